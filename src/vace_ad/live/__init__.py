"""Live operation: readings in, rows, scores, alarms with a life, and messages that arrive."""
