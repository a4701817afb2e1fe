"""The TSB-AD-M benchmark: its series, protocols, a runner, tables, figures, published numbers."""
