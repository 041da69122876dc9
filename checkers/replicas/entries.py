"""The part of the catalogue that is about replicas on their disks."""

from typing import Final

from checkers.entry import Entry, Kind, Strength

__all__ = ["REPLICA_ENTRIES"]

_UNCLEAN: Final = "an election of the partition was recorded as unclean"
_RECORDS: Final = ("replicas", "replica_records")

REPLICA_ENTRIES: Final = (
    Entry(
        id="D16",
        name="divergent-replicas",
        title="Two replicas hold different records that both call committed",
        kind=Kind.ANOMALY,
        rule="At an offset below the checkpointed high watermarks of two replicas, and above both "
        "log starts, one holds a record that the other does not: another key or value, another "
        "leader epoch, or none. Unknown where no metadata log tells of elections.",
        meaning="What a consumer reads depends on who leads.",
        case="an offset below the high watermarks of two replicas",
        source="KIP-101, KIP-279",
        strength=Strength.ALLOWED_IF,
        allowed_if=_UNCLEAN,
        needs=_RECORDS,
    ),
    Entry(
        id="D17",
        name="truncated-below-high-watermark",
        title="A replica cut off records that were committed",
        kind=Kind.ANOMALY,
        rule="A record was acknowledged under acks=all while a broker was in the ISR all through "
        "the send. The broker's log, read whole, does not hold it at its offset, though no fault "
        "changed that disk since, and it has been a replica ever since. Or along the way: the "
        "broker fetched from that offset or below, or led and took a record there, after the "
        "acknowledgement.",
        meaning="A broker that had the data threw it away: the copies are gone with it.",
        case="an acknowledged record that a replica held, or an end of such a replica's log that "
        "was seen along the way",
        source="KIP-101, KIP-279; KAFKA-18991, KAFKA-14139",
        strength=Strength.ALLOWED_IF,
        allowed_if=_UNCLEAN,
        needs=("metadata_log", *_RECORDS),
    ),
    Entry(
        id="D20",
        name="acknowledged-below-min-isr",
        title="A record was acknowledged by fewer replicas than were asked for",
        kind=Kind.ANOMALY,
        rule="A record was acknowledged under acks=all, and one version of its partition was in "
        "force from the call to the return, with an ISR smaller than the topic's "
        "min.insync.replicas, of which the leader had said a second before the call that it had "
        "applied it.",
        meaning="An acknowledged record lies on fewer disks than it was paid for.",
        case="an acknowledged send under an ISR that its leader surely knew, where more than the "
        "leader was asked for",
        source="Apache Kafka's documentation, min.insync.replicas; KIP-497",
        strength=Strength.NEVER,
        needs=("metadata_log", "wire", "node_settings"),
    ),
    Entry(
        id="D21",
        name="read-below-min-isr",
        title="A record was first read while the ISR was smaller than asked for",
        kind=Kind.ANOMALY,
        rule="The first read of a record was called and returned under one version of its "
        "partition, with an ISR smaller than the topic's min.insync.replicas. The record may have "
        "been committed before, under a larger one.",
        meaning="A consumer acted on what fewer disks held than the topic asks for: what is lost "
        "then was not only written, but seen. Losses tell of it (`forensics.json`).",
        case="a record first read under an ISR that is known, where more than the leader is asked "
        "for",
        source="KIP-966; Apache Kafka's documentation, min.insync.replicas",
        strength=Strength.FIGURE,
        needs=("metadata_log", "node_settings"),
    ),
    Entry(
        id="D22",
        name="committed-below-min-isr",
        title="The high watermark rose while the ISR was smaller than asked for",
        kind=Kind.ANOMALY,
        rule="One version of a partition was in force from the call of a record's send to the "
        "return of its first read, with an ISR smaller than the topic's min.insync.replicas, of "
        "which the leader had said a second before the call that it had applied it. Judged while "
        "eligible leader replicas are on, of partitions without an unclean election.",
        meaning="A replica that left the ISR last, and may be elected for it, lacks what was "
        "committed: records that consumers saw are lost in a clean election.",
        case="a record that was sent and first read under one ISR, which its leader surely knew, "
        "with eligible leader replicas on and more than the leader asked for",
        source="KIP-966, additional high watermark advancement requirement",
        strength=Strength.NEVER,
        needs=("metadata_log", "wire", "node_settings"),
    ),
    Entry(
        id="C10",
        name="unsafe-leader-candidate",
        title="A member of the ISR or ELR lacks a committed record",
        kind=Kind.ANOMALY,
        rule="In the end, the log of a member of a partition's ISR or ELR ends below the highest "
        "high watermark that any of its replicas has checkpointed. A member whose log could not be "
        "read whole is unknown. Or along the way, with acks=all: a member fetched from the offset "
        "of a record that had been acknowledged, or below; or a record was sent after another one "
        "had been acknowledged, and was acknowledged at its offset or below.",
        meaning="When it is elected, acknowledged records are gone.",
        case="a member of an ISR or ELR at the end of the run; along the way, a leader that took "
        "records, or a member's Fetch",
        source="KIP-966",
        strength=Strength.ALLOWED_IF,
        allowed_if=_UNCLEAN,
        needs=("metadata_log", "replicas"),
    ),
)
