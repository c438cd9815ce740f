"""Selection of a statistic on a first part of the records."""
