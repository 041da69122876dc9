"""What the catalogue says of the nodes' own processes."""

from typing import Final

from checkers.entry import Entry, Kind, Strength

__all__ = ["FATAL_FAULT", "HEALTHY_PROCESSES", "UNREADABLE_DISK"]

HEALTHY_PROCESSES: Final = Entry(
    id="G4",
    name="healthy-processes",
    title="No JVM ran out of memory or crashed",
    kind=Kind.GROUND,
    rule="No line of a node's log names an OutOfMemoryError or a fatal error of the JVM.",
    meaning="A run on too small a heap, or on a broken machine, proves nothing about Kafka.",
    case="a node whose log was looked through",
    source="history/cluster_schema.py, LOG_FINDINGS",
    strength=Strength.NEVER,
    needs=("log_findings",),
)

FATAL_FAULT: Final = Entry(
    id="G5",
    name="fatal-fault",
    title="A node met what its own code holds impossible",
    kind=Kind.ANOMALY,
    rule='No line of a node\'s log says "Encountered fatal fault".',
    meaning="The node is gone or useless until somebody looks, and may be so after each restart.",
    case="a node whose log was looked through",
    source="Kafka, `org.apache.kafka.server.fault.FaultHandler`",
    strength=Strength.ALLOWED_IF,
    allowed_if="the run changed the disk of this node or of a controller (wiped it, or put an old "
    "copy in its place), or let this node's disk fill up, fail or stall",
    needs=("log_findings",),
)

UNREADABLE_DISK: Final = Entry(
    id="G6",
    name="unreadable-disk",
    title="A node does not start on the disk that it has",
    kind=Kind.ANOMALY,
    rule="No node says at its start that what identifies its disk or its cluster is not there, or "
    "cannot be read.",
    meaning="What formatted the disk, or the node itself, left behind what a loss of power makes "
    "unreadable: the node is down until somebody formats it anew.",
    case="a node whose log was looked through",
    source="Kafka, `BootstrapDirectory`, `MetaPropertiesEnsemble`",
    strength=Strength.ALLOWED_IF,
    allowed_if="the run changed the node's disk in another way than by a loss of power or by "
    "formatting it",
    needs=("log_findings",),
)
