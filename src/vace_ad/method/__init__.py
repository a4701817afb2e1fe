"""The method, one idea a file, its equation beside its code."""
