"""The velocity pretext, trained by torch: for the presets."""
