"""Private rows in files: folders of Parquet or .npy shards, read a part at a time."""
