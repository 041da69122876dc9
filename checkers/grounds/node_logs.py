"""G4 healthy-processes, G5 fatal-fault, G6 unreadable-disk: three checks of the nodes' logs.

A log is prose; what was recorded of it are the few lines that nothing else writes
(`history.cluster_schema.LOG_FINDINGS`).

A process that ended without a word is a shortfall of the run (as-planned). All three are
unknown for a node that logged nothing at all.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from fencepost.checkers.anomaly import Found, none
from fencepost.checkers.disk_faults import DISK_FAULTS, DISK_REFUSALS
from fencepost.checkers.entry import CatalogueEntry, Kind, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.view import MetadataView, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.table_check import TableCheck

FATAL_ENTRY: Final = CatalogueEntry.of(
    """G5 fatal-fault: A node met what its own code holds impossible.

    No line of a node's log says "Encountered … fault" (Kafka: fatal, of metadata loading or
    publishing, or of the quorum controller) or "Digests are not matching" (ZooKeeper).

    Such a fault has ended the process, or left it without a part of what it has to apply, so that
    it may never take part again. No schedule of kills, pauses and cut links may bring that about,
    nor may a loss of power, which leaves what was synced. The metadata logs may contradict each
    other where the run had wiped a disk or put an old copy in its place. Nor can a node go on whose
    disk the run filled up, or let fail.

    Meaning: A node of Kafka is gone or useless until somebody looks, and may be so after each
    restart; the metric that counts these faults is to be 0 at all times. A server of ZooKeeper has
    another tree than the transactions that it applied were made for.
    Allowed if: the run had changed the disk of this node or of a controller, in another way than by
    a loss of power (wiped it, or put an old copy in its place), or let this node's disk fill up,
    fail or stall
    Case: a node whose log was looked through
    Source: Kafka, `org.apache.kafka.server.fault.FaultHandler`; ZooKeeper,
    `org.apache.zookeeper.server.DataTree.compareDigest`
    """,
    nearness=Nearness.REMAINS,
    culprit=("{node_role}", "{fault}"),
    needs=("log_findings",),
)
FATAL: Final = FATAL_ENTRY.name
HEALTHY_ENTRY: Final = CatalogueEntry.of(
    """G4 healthy-processes: No node ran out of memory or crashed on its own.

    No line of a node's log names an OutOfMemoryError or a fatal error of the JVM.

    Meaning: A run on too small a heap, or on a broken machine, proves nothing about Kafka.
    Case: a node whose log was looked through
    Source: history/cluster_schema.py, LOG_FINDINGS; the HotSpot VM's messages
    """,
    kind=Kind.GROUND,
    needs=("log_findings",),
)
HEALTHY: Final = HEALTHY_ENTRY.name
UNREADABLE_ENTRY: Final = CatalogueEntry.of(
    """G6 unreadable-disk: A node does not start on the disk that it has.

    No node says at its start that what identifies its disk or its cluster is not there, or cannot
    be read; no server of ZooKeeper that it cannot load its database.

    A loss of power leaves what was synced, and a wiped disk was formatted: neither may bring that
    about. Every other change of its disk may, once it was made.

    Meaning: What formatted the disk, or the node itself, left behind what a loss of power makes
    unreadable: the node is down until somebody formats it anew.
    Allowed if: the run had changed the node's disk in another way than by a loss of power or by
    formatting it, or had let it fill up, and the error is that of a full disk
    Case: a node whose log was looked through
    Source: Kafka, `BootstrapDirectory`, `MetaPropertiesEnsemble`; ZooKeeper,
    `org.apache.zookeeper.server.quorum.QuorumPeer.loadDataBase`
    """,
    nearness=Nearness.REMAINS,
    culprit=("{node_role}",),
    needs=("log_findings",),
)
UNREADABLE: Final = UNREADABLE_ENTRY.name

_FATAL: Final = ("fatal-fault",)
_UNREADABLE: Final = ("unreadable-disk",)
_SYNCED: Final = frozenset({"cut_power"})
"""Changes of a disk that leave all that was synced: a node has to go on from it."""
_SOUND: Final = _SYNCED | {"wipe"}
"""Changes of a disk after which a node has to start."""
_OF_THE_DISK: Final = ("No space left on device", "Read-only file system", "Input/output error")
_BY: Final = " | "
"""Stands before each exception of a start that failed; runs of earlier versions tell none."""
_FAULT: Final = re.compile(r"(?<=Encountered )[a-z ]+ fault(?=:)|Digests are not matching")
"""The fault that a line names."""
_WALL_CLOCK_NS: Final = 1_000_000_000
"""A log has the time of the wall clock, which somebody may set during a run: a second of doubt."""
_SICK: Final = ("out-of-memory", "jvm-crash")
_SILENT: Final = "silent"
"""The finding of a node that logged nothing."""

Row = Mapping[str, Any]
"""A row of LOG_FINDINGS."""


def fatal_faults(tables: Tables, seen: MetadataView) -> Judged:
    """Find fatal faults, by node. Reads `log_findings` and `faults`."""
    changed = _begun_ns(tables, faults=DISK_FAULTS - _SYNCED)
    refused = _begun_ns(tables, faults=DISK_REFUSALS)
    controllers = seen.facts.controllers
    for node, rows in _rows(tables, seen.facts, findings=_FATAL):
        excused_ns = min(
            refused.get(node, OPEN_NS),
            *(changed.get(one, OPEN_NS) for one in (node, *controllers)),
        )
        yield node, _found(FATAL, node, rows, legal=partial(_may_follow, time_ns=excused_ns))


def unreadable_disks(tables: Tables, seen: MetadataView) -> Judged:
    """Find disks on which a node did not start, by node. Reads `log_findings` and `faults`."""
    changed = _begun_ns(tables, faults=DISK_FAULTS - _SOUND)
    refused = _begun_ns(tables, faults=DISK_REFUSALS)
    for node, rows in _rows(tables, seen.facts, findings=_UNREADABLE):
        changed_ns = changed.get(node, OPEN_NS)
        any_ns = min(changed_ns, refused.get(node, OPEN_NS))

        def is_legal(row: Row, changed_ns: int = changed_ns, any_ns: int = any_ns) -> bool:
            return _may_follow(row, time_ns=changed_ns if _is_of_a_file(row) else any_ns)

        yield node, _found(UNREADABLE, node, rows, legal=is_legal)


def _is_of_a_file(row: Row) -> bool:
    """Return whether the line tells why, and that the disk refused nothing."""
    return _BY in row["text"] and not any(words in row["text"] for words in _OF_THE_DISK)


def sick_processes(tables: Tables, seen: MetadataView) -> Judged:
    """Find JVMs out of memory or crashed, by node. Reads `log_findings`."""
    for node, rows in _rows(tables, seen.facts, findings=_SICK):
        yield node, _found(HEALTHY, node, rows, legal=lambda _: False)


def _found(check: str, node: str, rows: list[Row], *, legal: Callable[[Row], bool]) -> Found:
    """Return the findings of a node, which is one case, unless its log is empty."""
    if any(row["finding"] == _SILENT for row in rows):
        return none(check, node, cases=0, doubt="it logged nothing, so its state is not known")
    ordered = sorted(rows, key=legal)
    proofs = [_proof(row) for row in ordered]
    return spelled(check, node, proofs, cases=1, allowed_count=sum(map(legal, rows)))


def _may_follow(row: Row, *, time_ns: int) -> bool:
    """Return whether the line may have been logged after that time; `OPEN_NS`: never."""
    logged_ns = row["time_ns"]
    return time_ns < (OPEN_NS if logged_ns is None else logged_ns + _WALL_CLOCK_NS)


def _begun_ns(tables: Tables, *, faults: frozenset[str]) -> dict[str, int]:
    """Return when the first of these faults was begun, by the nodes that one was done to."""
    begun: dict[str, int] = {}
    for row in tables["faults"].select(["fault", "targets", "begin_ns"]).to_pylist():
        for node in row["targets"] if row["fault"] in faults else ():
            begun[node] = min(row["begin_ns"], begun.get(node, OPEN_NS))
    return begun


def _rows(
    tables: Tables, facts: Facts, *, findings: tuple[str, ...]
) -> Iterator[tuple[str, list[Row]]]:
    """Yield for each node, in order, its findings."""
    found: dict[str, list[Row]] = {node: [] for node in facts.node_ids}
    for row in tables["log_findings"].to_pylist():
        if row["finding"] in (*findings, _SILENT):
            found.setdefault(row["node"], []).append(row)
    yield from sorted(found.items())


def _proof(row: Row) -> Proof:
    fault = _FAULT.search(row["text"])
    what = ' "{fault}"' if fault else ""
    when = "" if row["time_ns"] is None else " at {logged}"
    named: dict[str, Any] = {"fault": fault[0].lower()} if fault else {}
    return Proof.of(
        f"{{node}} logged{what}{when} ({{file}}, line {{line}}): {{text}}",
        values={"line": row["line"]},
        times={"logged": row["time_ns"]},
        node=row["node"],
        file=row["file"],
        text=row["text"],
        **named,
    )


CHECKS: Final = (
    TableCheck(
        entry=HEALTHY_ENTRY,
        kernel=sick_processes,
    ),
    TableCheck(
        entry=FATAL_ENTRY,
        kernel=fatal_faults,
        tables=("log_findings", "faults"),
    ),
    TableCheck(
        entry=UNREADABLE_ENTRY,
        kernel=unreadable_disks,
        tables=("log_findings", "faults"),
    ),
)
