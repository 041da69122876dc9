"""The pass over the operations: each file summed up where it lies, in one row."""

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from checkers.grounds.operations import COLUMNS, SUMMARY, FaultWindow, summary_of_operations
from checkers.runner.tables import SealedFile, operations_in, scanned
from history.failure import HarnessError

__all__ = ["summaries", "summaries_in"]


def summaries(files: DataFrame, *, windows: Sequence[FaultWindow]) -> DataFrame:
    """SUMMARY of all files of `operations`; `files` has one row a file (path, digest).

    A task holds one file, which the recorder bounds.
    """
    kernel = partial(summaries_in, windows=tuple(windows))
    return scanned(files, kernel, schema=SUMMARY)


def summaries_in(file: SealedFile, *, windows: Sequence[FaultWindow]) -> Iterator[pa.Table]:
    """SUMMARY of one file: one row, which says so if the file cannot be read."""
    try:
        operations = operations_in(file, COLUMNS)
    except HarnessError as error:
        row = {"path": file.path, "unreadable": str(error)}
        yield pa.Table.from_pylist([row], schema=SUMMARY)
    else:
        yield summary_of_operations(file.path, operations, windows=windows)
