"""The velocity pretext, by hand and by torch: for the presets."""
