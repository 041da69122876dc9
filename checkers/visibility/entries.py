"""What the catalogue says of the checks of visibility."""

from typing import Final

from checkers.entry import Entry, Kind, Strength

__all__ = ["BACKWARD_SESSION", "NONREPEATABLE", "STALE", "VISIBILITY"]

_ALLOWED_IF: Final = (
    "the run promises no greatest age of metadata, as no release of Kafka does, or the read is no "
    "older than promised; then it is a figure"
)

STALE: Final = Entry(
    id="V1",
    name="stale-read-after-write",
    title="A read of metadata lacks a write that was acknowledged before it",
    kind=Kind.ANOMALY,
    rule="A read shows what can only have been made before a write was called, and that write was "
    "acknowledged before the read was called: an old topic id after a deletion or a new creation, "
    "no topic after a creation or a change of its settings, an old setting after a newer one, "
    "fewer partitions of a topic id than it was given. Whatever a write without a clear "
    "end may have made is never stale.",
    meaning="A client creates a topic and is told that there is none. By how much: count of reads "
    "and topics, and the time from the acknowledgement to the read.",
    source="KIP-1243; KAFKA-20089",
    strength=Strength.ALLOWED_IF,
    allowed_if=_ALLOWED_IF,
    needs=("describes", "metadata_writes"),
)

NONREPEATABLE: Final = Entry(
    id="V2",
    name="nonrepeatable-read",
    title="Reads of metadata through different brokers go back",
    kind=Kind.ANOMALY,
    rule="A read returned before another, through a different broker, was called, and the second "
    "shows what can only have been made before what the first one shows: an older topic id, an "
    "older setting, no topic, an older leader epoch or fewer partitions of the same topic id.",
    meaning="A client that changes its broker is put back in time.",
    source="KIP-1243; KAFKA-20089",
    strength=Strength.ALLOWED_IF,
    allowed_if=_ALLOWED_IF,
    needs=("describes",),
)

BACKWARD_SESSION: Final = Entry(
    id="V3",
    name="session-went-back",
    title="Reads of metadata through one broker go back",
    kind=Kind.ANOMALY,
    rule="As nonrepeatable-read, through one broker.",
    meaning="A broker forgot metadata that it had shown, as one that starts again does.",
    source="KIP-1243",
    strength=Strength.ALLOWED_IF,
    allowed_if=_ALLOWED_IF,
    needs=("describes",),
)

VISIBILITY: Final = (STALE, NONREPEATABLE, BACKWARD_SESSION)
"""In order."""
