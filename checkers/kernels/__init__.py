"""Kernels: numpy over one key's records, importable without Spark."""
