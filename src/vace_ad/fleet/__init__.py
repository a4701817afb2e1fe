"""Many machines at once: a model each or one for all, one budget, one ranked overview."""
