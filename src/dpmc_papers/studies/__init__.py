"""Studies, one file per kind: measurements of the replicates at one point of a grid."""
