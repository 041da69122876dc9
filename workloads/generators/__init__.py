"""The next act of a client, decided from a seed and a given clock: no sockets, no sleeping."""
