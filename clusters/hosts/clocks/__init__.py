"""Wall clocks of nodes that are wrong on purpose: what tells them wrong, and what they then say."""
