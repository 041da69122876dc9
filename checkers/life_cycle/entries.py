"""What the catalogue says of the checks of the life cycle of brokers.

Of what a protocol of identities may promise, these are the rules that a tape, a metadata log and
the reads of clients can show. L2 wrong-id and L4 lost or garbage mapping are of systems in which
ids are looked up by host name in ZooKeeper, and are not asked.
"""

from typing import Final

from checkers.entry import Entry, Kind, Strength

__all__ = ["LIFE_CYCLE_ENTRIES"]

LIFE_CYCLE_ENTRIES: Final = (
    Entry(
        id="L1",
        name="refused-but-running",
        title="A broker that was refused goes on",
        kind=Kind.ANOMALY,
        rule="The registration of an incarnation was refused, and it sent a heartbeat or an "
        "AlterPartition before it tried again; none of its tries was accepted or left unanswered.",
        meaning="A broker that nobody knows takes part.",
        case="a refusal of a registration",
        source="KIP-631",
        strength=Strength.NEVER,
        needs=("wire",),
    ),
    Entry(
        id="L3",
        name="duplicate-id",
        title="A broker id was given away while its holder lived",
        kind=Kind.ANOMALY,
        rule="Another incarnation registered under the id of an unfenced broker that was not "
        "leaving, and the latest that this can have been decided is less than the session time-out "
        "after the earliest that the same controller can have taken the holder's last heartbeat.",
        meaning="Two processes take themselves for one broker.",
        case="a registration of a broker id whose holder had sent a heartbeat that is on the tape",
        source="KIP-631",
        strength=Strength.NEVER,
        needs=("metadata_log", "wire", "node_settings"),
    ),
    Entry(
        id="L5",
        name="served-while-fenced",
        title="A broker that may not serve answered a client",
        kind=Kind.ANOMALY,
        rule="A broker answered a read of metadata that was called after its lease, counted from "
        "when it sent what was answered last, had ended, or after it had been told that it is "
        "fenced; and since then it had answered another one before.",
        meaning="A client is shown metadata, and may go on to write, through a broker that the "
        "cluster does without.",
        case="a read that a broker answered whose lease is on the tape",
        source="KIP-631",
        strength=Strength.ALLOWED_IF,
        allowed_if="brokers do not end their own leases, as those of no release of Kafka do: they "
        "learn from the metadata log that they are fenced, and may serve until then",
        promise="leases",
        needs=("describes", "wire", "node_settings"),
    ),
    Entry(
        id="L6",
        name="unsafe-shutdown",
        title="A broker was told that it may go while it led a partition",
        kind=Kind.ANOMALY,
        rule="The answer to a heartbeat told a broker that it may go, and from before its request "
        "had been passed on until after its answer had arrived the broker led some partition.",
        meaning="A planned restart takes partitions off line.",
        case="an answer that tells a broker that it may go",
        source="KIP-631",
        strength=Strength.NEVER,
        needs=("metadata_log", "wire"),
    ),
    Entry(
        id="L7",
        name="incarnation-went-back",
        title="An incarnation registered again after another took its place",
        kind=Kind.ANOMALY,
        rule="In the registrations of a broker id, no incarnation comes again after another one.",
        meaning="A registration out of the past replaces the broker that lives now.",
        case="a registration of a broker id after its first one",
        source="KIP-631",
        strength=Strength.NEVER,
        needs=("metadata_log",),
    ),
    Entry(
        id="L8",
        name="unfenced-too-early",
        title="A broker was unfenced before it had applied its own registration",
        kind=Kind.ANOMALY,
        rule="The metadata log unfences a broker, and by the latest that this can have been "
        "written, no heartbeat of its registration had been passed on that says it has applied "
        "the offset of that registration.",
        meaning="A broker serves clients, and may lead, by metadata from before its own start.",
        case="an unfencing of a registration of which a heartbeat is on the tape",
        source="KIP-631, Broker state machine",
        strength=Strength.NEVER,
        needs=("metadata_log", "wire"),
    ),
)
"""In the order of their ids."""
