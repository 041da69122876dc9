"""G4 healthy-processes, G5 fatal-fault, G6 unreadable-disk: three checks of the nodes' logs.

A log is prose; what was recorded of it are the few lines that nothing else writes
(`history.cluster_schema.LOG_FINDINGS`).

- *fatal-fault*: Kafka's own code met what it holds impossible ("Encountered fatal fault"), and
  ended the process or left it useless; or ZooKeeper's found that its tree is not the one that a
  transaction was made for ("Digests are not matching"). No schedule of kills, pauses and cut links
  may bring that about. It is allowed where the run itself changed the disk of this node or of a
  controller (wiped it, put an old copy in its place): the metadata logs may contradict each other
  then. Nor can a node go on whose disk the run filled up, or let fail.
- *unreadable-disk*: a node says at its start that its bootstrap metadata or its `meta.properties`
  are not there, or not readable. A loss of power leaves what was synced, and a wiped disk was
  formatted: neither may bring that about. Every other change of its disk may.
- *healthy-processes*: a JVM ran out of memory, or crashed on its own. That says more of the heap it
  was given and of the machine than of Kafka, so what the run shows is not to be trusted: it is
  unknown.

A process that ended without a word is a shortfall of the run (as-planned).

Source: `org.apache.kafka.server.fault.FaultHandler`;
`org.apache.zookeeper.server.DataTree.compareDigest`; the HotSpot VM's messages.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from checkers.anomaly import Found
from checkers.disk_faults import DISK_FAULTS, DISK_REFUSALS
from checkers.entry import CatalogueEntry, Kind, Strength
from checkers.facts import Facts, Judged, Tables
from checkers.metadata.view import MetadataView, spelled
from checkers.proof import Proof
from checkers.table_check import TableCheck

__all__ = [
    "CHECKS",
    "FATAL",
    "HEALTHY",
    "UNREADABLE",
    "fatal_faults",
    "sick_processes",
    "unreadable_disks",
]

FATAL: Final = "fatal-fault"
HEALTHY: Final = "healthy-processes"
UNREADABLE: Final = "unreadable-disk"

_FATAL: Final = ("fatal-fault",)
_UNREADABLE: Final = ("unreadable-disk",)
_SOUND: Final = frozenset({"cut_power", "wipe"})
"""Changes of a disk after which a node has to start."""
_SICK: Final = ("out-of-memory", "jvm-crash")

Row = Mapping[str, Any]
"""A row of LOG_FINDINGS."""


def fatal_faults(tables: Tables, seen: MetadataView) -> Judged:
    """Find fatal faults, by node. Reads `log_findings` and `faults`."""
    changed = _targets(tables, faults=DISK_FAULTS)
    refused = _targets(tables, faults=DISK_REFUSALS)
    controllers = seen.facts.controllers
    for node, proofs in _proofs(tables, seen.facts, findings=_FATAL):
        allowed = node in refused or not changed.isdisjoint({node, *controllers})
        yield node, _found(FATAL, node, proofs, allowed=allowed)


def unreadable_disks(tables: Tables, seen: MetadataView) -> Judged:
    """Find disks on which a node did not start, by node. Reads `log_findings` and `faults`."""
    changed = _targets(tables, faults=(DISK_FAULTS | DISK_REFUSALS) - _SOUND)
    for node, proofs in _proofs(tables, seen.facts, findings=_UNREADABLE):
        yield node, _found(UNREADABLE, node, proofs, allowed=node in changed)


def sick_processes(tables: Tables, seen: MetadataView) -> Judged:
    """Find JVMs out of memory or crashed, by node. Reads `log_findings`."""
    for node, proofs in _proofs(tables, seen.facts, findings=_SICK):
        yield node, _found(HEALTHY, node, proofs, allowed=False)


def _found(check: str, node: str, proofs: list[Proof], *, allowed: bool) -> Found:
    """Return the findings of a node, which is one case, whatever its log says."""
    legal = len(proofs) if allowed else 0
    return spelled(check, node, proofs, cases=1, allowed_count=legal)


def _targets(tables: Tables, *, faults: frozenset[str]) -> set[str]:
    """Return the nodes that one of these faults was done to."""
    return {
        node
        for row in tables["faults"].select(["fault", "targets"]).to_pylist()
        for node in row["targets"]
        if row["fault"] in faults
    }


def _proofs(
    tables: Tables, facts: Facts, *, findings: tuple[str, ...]
) -> Iterator[tuple[str, list[Proof]]]:
    """Yield for each node, in order, its findings."""
    found: dict[str, list[Proof]] = {node: [] for node in facts.node_ids}
    for row in tables["log_findings"].to_pylist():
        if row["finding"] in findings:
            found.setdefault(row["node"], []).append(_proof(row))
    yield from sorted(found.items())


def _proof(row: Row) -> Proof:
    when = "" if row["time_ns"] is None else " at {logged}"
    return Proof.of(
        f"{{node}} logged{when} ({{file}}, line {{line}}): {{text}}",
        values={"line": row["line"]},
        times={"logged": row["time_ns"]},
        node=row["node"],
        file=row["file"],
        text=row["text"],
    )


CHECKS: Final = (
    TableCheck(
        entry=CatalogueEntry(
            id="G4",
            name=HEALTHY,
            title="No JVM ran out of memory or crashed",
            kind=Kind.GROUND,
            rule="No line of a node's log names an OutOfMemoryError or a fatal error of the JVM.",
            meaning="A run on too small a heap, or on a broken machine, proves nothing about "
            "Kafka.",
            case="a node whose log was looked through",
            source="history/cluster_schema.py, LOG_FINDINGS",
            needs=("log_findings",),
        ),
        kernel=sick_processes,
    ),
    TableCheck(
        entry=CatalogueEntry(
            id="G5",
            name=FATAL,
            title="A node met what its own code holds impossible",
            rule='No line of a node\'s log says "Encountered fatal fault" (Kafka) or "Digests are '
            'not matching" (ZooKeeper).',
            meaning="A node of Kafka is gone or useless until somebody looks, and may be so after "
            "each restart. A server of ZooKeeper has another tree than the transactions that it "
            "applied were made for.",
            case="a node whose log was looked through",
            source="Kafka, `org.apache.kafka.server.fault.FaultHandler`; ZooKeeper, "
            "`org.apache.zookeeper.server.DataTree.compareDigest`",
            strength=Strength.ALLOWED_IF,
            allowed_if="the run changed the disk of this node or of a controller (wiped it, or "
            "put an old copy in its place), or let this node's disk fill up, fail or stall",
            needs=("log_findings",),
        ),
        kernel=fatal_faults,
        tables=("log_findings", "faults"),
    ),
    TableCheck(
        entry=CatalogueEntry(
            id="G6",
            name=UNREADABLE,
            title="A node does not start on the disk that it has",
            rule="No node says at its start that what identifies its disk or its cluster is not "
            "there, or cannot be read.",
            meaning="What formatted the disk, or the node itself, left behind what a loss of "
            "power makes unreadable: the node is down until somebody formats it anew.",
            case="a node whose log was looked through",
            source="Kafka, `BootstrapDirectory`, `MetaPropertiesEnsemble`",
            strength=Strength.ALLOWED_IF,
            allowed_if="the run changed the node's disk in another way than by a loss of power or "
            "by formatting it",
            needs=("log_findings",),
        ),
        kernel=unreadable_disks,
        tables=("log_findings", "faults"),
    ),
)
