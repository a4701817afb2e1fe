"""Shared by all applications: load tables, choose training rows, run, write results.

The command line, the service, notebooks and fleets share it; none of it prints.
"""
