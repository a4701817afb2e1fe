"""The version, apart from the package's public names, so that every module may say it."""

__version__ = "0.1.0"
