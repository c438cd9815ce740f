"""What is released of records in two parts and how theta is estimated, one file each."""
