"""What people see of a detector and a detection: text, card, plot, and the report's contents."""
