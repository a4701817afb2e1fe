"""Executors: tasks in local processes or on a cluster, with results stored line by line.

The benchmark and fleets share it. It knows neither detectors nor tables.
"""
