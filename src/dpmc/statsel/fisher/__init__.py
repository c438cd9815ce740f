"""Fisher information of a released statistic."""
