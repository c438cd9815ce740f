"""What is measured of replicates at one point of a study, one file per kind of study."""
