"""Many tasks and their results: in processes here or on a cluster, kept line by line.

The benchmark and fleets share it. It knows neither detectors nor tables.
"""
