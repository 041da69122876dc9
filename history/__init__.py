"""The recorded data: tables, schemas, the recorder, the reader, the manifest, the error registry.

Both halves of the product lean on this package alone: clusters, nemeses and workloads write
through it, checkers and reports read through it, and they meet in the files of a run directory.
"""
