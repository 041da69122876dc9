"""The formats of open histories."""

from enum import StrEnum

__all__ = ["Format"]


class Format(StrEnum):
    """How a history stands in a file."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    EDN = "edn"
