"""What a client does next, decided from a seed and a given clock, without sockets or sleep."""
