"""The proxy on every link of a cluster: rules (pure), sessions (sans-IO), a shell."""
