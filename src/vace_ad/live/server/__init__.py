"""The server: the page, metrics, health, and rows pushed over HTTP."""
