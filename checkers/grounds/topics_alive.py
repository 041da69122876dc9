"""G11 topics-alive: The number of topics that clients have at a time.

The topics that clients of metadata named and that the longest metadata log has: at its end, and at
most since its beginning, beside the number that the workload promises.

The workload says how many it has at a time. More of them (a creation without an answer that nobody
cleared up) make every read of metadata longer and every run of some length another one than was
asked for. Counted in the log of the node whose log goes on longest, from its beginning; where that
is a snapshot, the greatest number is that of the time since.

Meaning: A figure for people. Far more topics than promised: what ended without an answer was not
cleared up, and each read of metadata carries it along.
Case: a topic that a client named in a write
Source: workloads/generators/topic_lives.py
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Kind, Strength
from fencepost.checkers.runner.tables import cluster_file, opened, rows_in
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest
from fencepost.history.run_directory import RunDirectory

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    kind=Kind.GROUND,
    strength=Strength.FIGURE,
    needs=("metadata_log", "metadata_writes"),
)
_NAME: Final = ENTRY.name
TABLES: Final = frozenset(("metadata_log", "metadata_writes"))
_COLUMNS: Final = ("node", "metadata_offset", "type", "topic")
_ADDED: Final = "TopicRecord"
_REMOVED: Final = "RemoveTopicRecord"
_END: Final = "topics_alive_count"
_MAX: Final = "topics_alive_max_count"
_PROMISED: Final = "topics_promised_count"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsAlive:
    """The topics of clients of metadata in one run."""

    end_count: int
    """Those that were there when the log ended."""
    max_count: int
    """The greatest number at a time."""
    promised: int | None


def topics_alive(run: RunDirectory, manifest: Manifest) -> CheckResult:
    """Count the clients' own topics, at the end and at most, beside what was promised."""
    try:
        writes = rows_in(cluster_file(run, manifest, "metadata_writes"), "metadata_writes")
        mine = frozenset(pc.unique(writes["topic"]).to_pylist())
        alive, most = _alive(_changes(run, manifest, mine))
    except HarnessError as error:
        return CheckResult(check=_NAME, validity=Validity.UNKNOWN, reason=str(error))
    promised = manifest.promises.topics_max
    return CheckResult(
        check=_NAME,
        validity=Validity.VALID,
        case_count=len(mine),
        figures={_END: alive, _MAX: most} | ({} if promised is None else {_PROMISED: promised}),
    )


def topics_alive_in(verdict: Verdict) -> TopicsAlive | None:
    """Return the topics that a verdict tells; None if the run has none."""
    told = next((one.figures for one in verdict.checks if one.check == _NAME), {})
    if _END not in told:
        return None
    promised = told.get(_PROMISED)
    return TopicsAlive(
        end_count=int(told[_END]),
        max_count=int(told[_MAX]),
        promised=None if promised is None else int(promised),
    )


def _changes(
    run: RunDirectory, manifest: Manifest, mine: frozenset[str]
) -> dict[str, list[tuple[int, str, str]]]:
    """Return by node the topics that were added and removed, and how far its log goes."""
    found: dict[str, list[tuple[int, str, str]]] = {}
    for row in _rows(run, manifest):
        of_node = found.setdefault(row["node"], [(-1, "", "")])
        of_node[0] = (max(of_node[0][0], row["metadata_offset"]), "", "")
        if row["type"] in (_ADDED, _REMOVED) and row["topic"] in mine:
            of_node.append((row["metadata_offset"], row["type"], row["topic"]))
    return found


def _rows(run: RunDirectory, manifest: Manifest) -> Iterator[dict[str, Any]]:
    with opened(cluster_file(run, manifest, "metadata_log"), "metadata_log") as parquet:
        for batch in parquet.iter_batches(columns=list(_COLUMNS)):
            yield from batch.to_pylist()


def _alive(changes: dict[str, list[tuple[int, str, str]]]) -> tuple[int, int]:
    alive: set[str] = set()
    most = 0
    longest = max(changes.values(), key=lambda rows: rows[0][0], default=[])
    for _, type_, topic in longest[1:]:
        if type_ == _ADDED:
            alive.add(topic)
        else:
            alive.discard(topic)
        most = max(most, len(alive))
    return len(alive), most


CHECKS: Final = (ENTRY,)
