"""The formats of open histories."""

from enum import StrEnum

__all__ = ["Format"]


class Format(StrEnum):
    """The format of a history in a file."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    EDN = "edn"
