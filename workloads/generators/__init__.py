"""What comes next, decided from a seed and a clock that is handed in: no sockets, no sleeping."""
