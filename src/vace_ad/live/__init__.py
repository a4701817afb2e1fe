"""Live operation: readings, rows, scores, alarms and their delivery."""
