"""Histories of other tools, in and out: JSON lines, Parquet, Jepsen's EDN. Pure formats."""
