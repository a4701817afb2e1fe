"""Text, notebook card, plot and report contents of a detector and a detection."""
