"""A cluster of our own: KRaft's generation of protocols, sans-IO, and as processes."""
