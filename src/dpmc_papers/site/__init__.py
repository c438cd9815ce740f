"""The static site: every result, its privacy guarantee and its verdict, for a browser."""
