"""The static site: every result, what it is worth in privacy, and every verdict, for a browser."""
