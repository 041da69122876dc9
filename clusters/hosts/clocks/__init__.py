"""Wall clocks of nodes that are wrong on purpose: how they are set, and how they are read back."""
