"""G7 recordings: the tables that the run set out to record of its cluster are filled.

A table that is empty judges nothing, and what judges nothing finds nothing wrong. Most checks would
say so themselves (not judged), but a run whose tape was lost, or whose disks were not read, is not
what it was meant to be: it is unknown.

Asked of the tables that a run which came to its end always fills, if it set out to: a cluster that
lives sends frames, writes its metadata log, shows its metadata and has a leader of its quorum, and
its disks and settings can be read afterwards. Not asked of what a run may do without: what clients
ask for besides their sends and polls, and lines of trouble in logs.
"""

from collections.abc import Mapping
from typing import Final

from checkers.entry import CatalogueEntry, Kind
from checkers.runner.tables import cluster_file, row_count
from checkers.verdict import CheckResult, Validity
from history.manifest import Manifest
from history.run_directory import RunDirectory
from history.schema import RECORD_BUCKET_COUNT

__all__ = ["CHECKS", "NAME", "recordings"]

NAME: Final = "recordings"
_FILLED: Final[Mapping[str, str]] = {
    "wire": "the tape",
    "metadata_log": "the copy of the metadata log",
    "metadata_offsets": "the table of metadata offsets",
    "describes": "the table of metadata reads",
    "quorum_claims": "the table of who claimed to lead the quorum",
    "replicas": "the table of replicas on disks",
    "replica_records": "the copy of the replicas' records",
    "node_settings": "the table of the nodes' settings",
}
"""In words, by name."""


def recordings(run: RunDirectory, manifest: Manifest) -> CheckResult:
    """Check that each table that must hold rows does; a run cut short is exempt."""
    wanted = [] if manifest.end_ns is None else [one for one in _FILLED if one in manifest.recorded]
    empty = [name for name in wanted if _row_count(run, manifest, name) == 0]
    return CheckResult(
        check=NAME,
        validity=Validity.UNKNOWN if empty else Validity.VALID,
        case_count=len(wanted),
        reason="; ".join(f"{_FILLED[name]} ({name}) is empty" for name in empty),
    )


def _row_count(run: RunDirectory, manifest: Manifest, name: str) -> int | None:
    """Return the row count; None if some rows cannot be read (the checks on them say so)."""
    buckets = range(RECORD_BUCKET_COUNT if name == "replica_records" else 1)
    counts = [row_count(cluster_file(run, manifest, name, bucket=bucket)) for bucket in buckets]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


CHECKS: Final = (
    CatalogueEntry(
        id="G7",
        name=NAME,
        title="What the run set out to record of its cluster is there",
        kind=Kind.GROUND,
        rule="Of a run that came to its end, each table that it set out to record and that such a "
        "run always fills holds something: the tape, the metadata log, metadata offsets, "
        "metadata reads, claims to lead the quorum, replicas, their records, settings.",
        meaning="A run whose tape is lost looks like one in which nothing went wrong.",
        case="a table that the run set out to record and has to fill",
        source="checkers/grounds/recordings.py",
        needs=("operations", "records"),
    ),
)
