"""The command `vace`."""
