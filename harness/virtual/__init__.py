"""Virtual time: the world's clock, looks at a simulated cluster, and what is kept of it."""
