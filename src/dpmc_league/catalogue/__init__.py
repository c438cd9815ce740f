"""Tasks, one file each: its name is that of the file, with hyphens."""
