"""The formats of open histories."""

from enum import StrEnum


class Format(StrEnum):
    """The format of a history in a file."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    EDN = "edn"
