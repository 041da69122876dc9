"""A stored run, from Python: its verdict, its findings, and its tables."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from fencepost.checkers.verdict import RunFinding, Validity, Verdict, read_verdict
from fencepost.harness.api.plots import Plots
from fencepost.history.manifest import Manifest, read_manifest
from fencepost.history.reader import load_table, table_files
from fencepost.history.run_directory import RunDirectory, find_run
from fencepost.history.schema import TABLES
from fencepost.nemesis.words import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Run:
    """A stored run.

    Each of its tables is an attribute, read when it is asked for: `run.operations`, `run.faults`,
    `run.wire`, `run.metadata_log` … are Arrow tables (`.to_pandas()` for pandas). `run.tables`
    names those that it has; docs/histories.md tells their columns, with units. Times are ns since
    the run began.
    """

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory

    @classmethod
    def found(cls, text: str | Path, results: Path) -> "Run":
        """Return the run of a directory, of a scenario's name (its last one), or `latest`.

        Raises UsageError if there is none.
        """
        return cls(find_run(str(text), results.absolute()))

    @property
    def root(self) -> Path:
        """The directory of its files."""
        return self._directory.root

    @cached_property
    def manifest(self) -> Manifest:
        """What ran where: scenario, system, release, seed, settings, workloads."""
        return read_manifest(self._directory.manifest_path)

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict with the answers of all checks. Raises HarnessError if none was reached."""
        return read_verdict(self._directory.verdict_path)

    @property
    def is_valid(self) -> bool:
        """Whether the verdict is valid; False, too, where it is unknown."""
        return self.verdict.validity is Validity.VALID

    @property
    def findings(self) -> tuple[RunFinding, ...]:
        """Its anomalies, those of one cause together."""
        return self.verdict.findings

    @property
    def report(self) -> Path:
        """Its page."""
        return self._directory.report_path

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that it recorded."""
        return tuple(sorted(one for one in TABLES if self._directory.table_path(one).exists()))

    def table(self, name: str) -> pa.Table:
        """Return a table. Raises HarnessError if the run did not record it, or its file is torn."""
        return load_table(self._directory, name)

    def spark(self, name: str, session: "SparkSession") -> "DataFrame":
        """Return a table as a DataFrame of `session`; nothing of it is read yet."""
        files = table_files(self._directory, name)
        return session.read.parquet(*map(str, files))

    @property
    def plot(self) -> Plots:
        """Its plots: `run.plot.latency()`."""
        return Plots(self._directory)

    def __getattr__(self, name: str) -> pa.Table:
        if name not in TABLES:
            raise AttributeError(f"a run has no table {name}; {did_you_mean(name, TABLES)}")
        return self.table(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.tables]

    def __repr__(self) -> str:
        return f"<fencepost.Run {self.root}>"
