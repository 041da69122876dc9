"""The paths of a run's files, and the ways to find a run again.

    results/<scenario>/<yyyymmddThhmmssZ>/   one run
    results/<scenario>/latest                the scenario's last run
    results/latest                           the last run of all

The directory is all that the recording and the checking half share. Its `history/` is there only
once it is sealed and whole; until then the evidence is in `raw/`.
"""

import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fencepost.history.atomic import link_atomically
from fencepost.history.failure import HarnessError, UsageError

LATEST = "latest"

_SCENARIO_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_RUNS_A_SECOND_MAX = 100
_LISTED_MAX = 10
_PARTITIONED = (
    "operations",
    "records",
    "replica_records",
    "model_operations",
    "micro_operations",
    "znode_operations",
)


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The paths of one run; none of them has to exist."""

    root: Path
    source: str = ""
    """The URI of the run, where tasks that do not see `root` read the sealed tables; or empty."""

    @classmethod
    def create(cls, results: Path, scenario: str, at: datetime) -> "RunDirectory":
        """Make the directory of a run that starts `at`, and point both `latest` links at it.

        Runs of one second are told apart by a suffix (`…Z-01`). Raises UsageError for a name that
        cannot be a directory, HarnessError if the disk refuses or a second has too many runs.
        """
        refuse_name(scenario)
        run = cls(_make_root(results / scenario, at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")))
        run._fill()
        link_atomically(results / scenario / LATEST, run.root.name)
        link_atomically(results / LATEST, f"{scenario}/{run.root.name}")
        return run

    @classmethod
    def replace(cls, root: Path) -> "RunDirectory":
        """Return an empty directory of a run at `root`, from which all earlier content is removed.

        Raises HarnessError if the disk refuses, or if something else than a run is there.
        """
        if root.exists() and not (root / "manifest.json").is_file():
            raise HarnessError(f"{root} exists already, and is not a run")
        run = cls(root)
        try:
            shutil.rmtree(root, ignore_errors=True)
            root.mkdir(parents=True)
            run._fill()
        except OSError as error:
            raise HarnessError(f"cannot make {root}: {error}") from error
        return run

    @property
    def is_blank(self) -> bool:
        """True if nothing was recorded in it yet, and no node or client has a file."""
        begun = (self.raw, self.nodes, self.clients)
        return all(one.is_dir() and not any(one.iterdir()) for one in begun)

    @property
    def reserve(self) -> Path:
        """A file of no content that a run gives up when the disk is full, to say so at its end."""
        return self.root / ".reserve"

    def discard(self) -> None:
        """Remove a run that was refused before anything of it began.

        The `latest` links lead to the run before it then, or go as well.
        """
        of_scenario = self.root.parent
        shutil.rmtree(self.root, ignore_errors=True)
        for parent, runs in ((of_scenario, "*"), (of_scenario.parent, "*/*")):
            if before := _runs(parent, runs):
                link_atomically(parent / LATEST, str(before[-1].relative_to(parent)))
            else:
                (parent / LATEST).unlink(missing_ok=True)
        if not any(of_scenario.iterdir()):
            of_scenario.rmdir()

    def _fill(self) -> None:
        for directory in (self.raw, self.nodes, self.clients):
            directory.mkdir()

    @property
    def manifest_path(self) -> Path:
        """The manifest: the scenario, the cluster and the seed of the run."""
        return self.root / "manifest.json"

    @property
    def scenario_path(self) -> Path:
        """A copy of the scenario."""
        return self.root / "scenario.yaml"

    @property
    def play_path(self) -> Path:
        """The play that was performed."""
        return self.root / "play.yaml"

    @property
    def raw(self) -> Path:
        """The raw records of the clients and the harness, until they are sealed."""
        return self.root / "raw"

    @property
    def history(self) -> Path:
        """The sealed tables; exists only once they are whole."""
        return self.root / "history"

    def table_path(self, name: str) -> Path:
        """Return a sealed table: a directory of files if it may be large, else one file."""
        from fencepost.history.schema import TABLES  # noqa: PLC0415  # it takes pyarrow; to find a run does not

        assert name in TABLES, f"no table {name!r} among {sorted(TABLES)}"
        return self.history / (name if name in _PARTITIONED else f"{name}.parquet")

    @property
    def nodes(self) -> Path:
        """One directory a node: logs, configuration, data."""
        return self.root / "nodes"

    @property
    def starts_path(self) -> Path:
        """How its nodes were started last; exists only where they can be started once more."""
        return self.nodes / "start.json"

    @property
    def kept(self) -> Path:
        """One directory a node of its cluster that was started once more, while that is up."""
        return self.root / "kept"

    @property
    def kept_path(self) -> Path:
        """The process that keeps that cluster running, its end, and where its nodes are."""
        return self.root / "kept.json"

    @property
    def clients(self) -> Path:
        """One log a client process."""
        return self.root / "clients"

    @property
    def verdict_path(self) -> Path:
        """The answers of the checkers."""
        return self.root / "verdict.json"

    @property
    def anomalies(self) -> Path:
        """One table a check that found something."""
        return self.root / "anomalies"

    @property
    def forensics_path(self) -> Path:
        """The fate of lost records; exists only where some were lost."""
        return self.root / "forensics.json"

    @property
    def report_path(self) -> Path:
        """The page for people."""
        return self.root / "report.html"

    @property
    def junit_path(self) -> Path:
        """The report for a build server."""
        return self.root / "junit.xml"


def refuse_name(name: str) -> None:
    """Raise UsageError for a name that runs cannot be stored under."""
    if _SCENARIO_NAME.fullmatch(name) is None or name == LATEST:
        raise UsageError(
            f"scenario name {name!r}: letters, digits, '.', '_' and '-', and not 'latest'"
        )


def find_run(text: str, results: Path) -> RunDirectory:
    """Return the run that a user means: its path, `latest`, or a scenario's name (its last run).

    Raises UsageError, listing the runs there are, if there is no such run.
    """
    for candidate in (Path(text), results / text):
        for root in (candidate, candidate / LATEST):
            if (root / "manifest.json").is_file():
                return RunDirectory(root.resolve())
    raise UsageError(f"no run {text!r} in {results}; {_existing(results)}")


def _make_root(parent: Path, name: str) -> Path:
    for attempt in range(_RUNS_A_SECOND_MAX):
        root = parent / (f"{name}-{attempt:02}" if attempt else name)
        try:
            root.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise HarnessError(f"cannot make {root}: {error.strerror}") from error
        return root
    raise HarnessError(f"more than {_RUNS_A_SECOND_MAX} runs in one second: {parent / name}")


def _existing(results: Path) -> str:
    runs = _runs(results, "*/*")
    if not runs:
        return "there are no runs yet"
    newest = reversed(runs[-_LISTED_MAX:])
    listed = ", ".join(f"{run.parent.name}/{run.name}" for run in newest)
    return f"there are (newest first): latest, {listed}"


def _runs(directory: Path, pattern: str) -> list[Path]:
    """Return the runs below a directory, the newest last."""
    found = (path.parent for path in directory.glob(f"{pattern}/manifest.json"))
    return sorted((run for run in found if LATEST not in run.parts[-2:]), key=lambda run: run.name)
