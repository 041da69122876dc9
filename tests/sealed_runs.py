"""Tables of runs that a test has just recorded."""

from pathlib import Path

import pyarrow as pa

from fencepost.history.reader import load_table, table_files
from fencepost.history.run_directory import RunDirectory
from fencepost.history.seal import seal


def sealed_table(run: RunDirectory, name: str) -> pa.Table:
    """The table, of a run that is sealed first if it is not."""
    _seal(run)
    return load_table(run, name)


def sealed_files(run: RunDirectory, name: str) -> tuple[Path, ...]:
    """The files of a table, likewise."""
    _seal(run)
    return table_files(run, name)


def _seal(run: RunDirectory) -> None:
    if not run.history.is_dir():
        seal(run)
