"""What the catalogue says of the nodes' own processes."""

from typing import Final

from checkers.entry import Entry, Kind, Strength

__all__ = ["FATAL_FAULT", "HEALTHY_PROCESSES"]

HEALTHY_PROCESSES: Final = Entry(
    id="G4",
    name="healthy-processes",
    title="No JVM ran out of memory or crashed",
    kind=Kind.GROUND,
    rule="No line of a node's log names an OutOfMemoryError or a fatal error of the JVM.",
    meaning="A run on too small a heap, or on a broken machine, proves nothing about Kafka.",
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
    source="Kafka, `org.apache.kafka.server.fault.FaultHandler`",
    strength=Strength.ALLOWED_IF,
    allowed_if="the run changed the disk of this node or of a controller: wiped it, or put an old "
    "copy in its place",
    needs=("log_findings",),
)
