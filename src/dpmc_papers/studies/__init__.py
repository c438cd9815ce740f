"""Studies, one file per kind: measurements of the replicates at one point of a grid.

``run(setup, dataset, replicates, progress)`` of a study takes the method and the points of its
setup, the rows of the problem, which it may leave unread, the numbers of replicates, and whom to
tell how much is done. It returns a table with the columns and types ``COLUMNS``, one row per point
and replicate if it says nothing else.
"""
