"""The torch modules of the neural baselines; each is loaded when its system is fitted."""
