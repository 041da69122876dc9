"""Keys that are too large for one task, cut into pieces and judged together."""
