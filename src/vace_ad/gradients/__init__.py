"""Training of a stack of convolutions by hand: passes forward and backward, steps of AdamW."""
