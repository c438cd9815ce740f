"""Rules of verdicts that the claims of one document need, one module per document."""
