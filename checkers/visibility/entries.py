"""What the catalogue says of the checks of visibility."""

from typing import Final

from checkers.entry import Entry, Kind, Strength

__all__ = [
    "BACKWARD_SESSION",
    "ISR_ENTRIES",
    "NONREPEATABLE",
    "STALE",
    "TOLD_ENTRIES",
    "VISIBILITY",
]

_ALLOWED_IF: Final = (
    "the run promises no greatest age of metadata, as no release of Kafka does, or the read is no "
    "older than promised; then it is a figure. A run may promise one of every read (`age_max_ms`), "
    "and one of reads called when nothing has been broken for a while (`settled_age_max_ms`, "
    "`settle_ms`). Brokers of the reference cluster that hide what not all have acknowledged "
    "(metadata.version 3) promise that no read is too old at all"
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
    case="a topic or partition in a read that was called after an acknowledged write of it",
    source="KIP-1243; KAFKA-20089",
    strength=Strength.ALLOWED_IF,
    allowed_if=_ALLOWED_IF,
    promise="metadata_age_is_bounded",
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
    case="a topic or partition in a read that was called after one through another broker",
    source="KIP-1243; KAFKA-20089",
    strength=Strength.ALLOWED_IF,
    allowed_if=_ALLOWED_IF,
    promise="metadata_age_is_bounded",
    needs=("describes",),
)

BACKWARD_SESSION: Final = Entry(
    id="V3",
    name="session-went-back",
    title="Reads of metadata through one broker go back",
    kind=Kind.ANOMALY,
    rule="As nonrepeatable-read, through one broker.",
    meaning="A broker forgot metadata that it had shown, as one that starts again does.",
    case="a topic or partition in a read that was called after one through the same broker",
    source="KIP-1243",
    strength=Strength.ALLOWED_IF,
    allowed_if=_ALLOWED_IF,
    promise="metadata_age_is_bounded",
    needs=("describes",),
)

VISIBILITY: Final = (STALE, NONREPEATABLE, BACKWARD_SESSION)
"""In order."""

_ACKNOWLEDGED: Final = (
    "the draft that adds LowestAcknowledgedOffset to BrokerHeartbeat, Read-after-write visibility"
)

_SAME: Final = "have the leader, the leader epoch, the ISR and the replicas that it showed"

ISR_ENTRIES: Final = (
    Entry(
        id="V6",
        name="isr-read-went-back",
        title="A broker shows an older ISR than it had shown",
        kind=Kind.ANOMALY,
        rule="Two reads of a partition were answered by one incarnation of a broker, the first one "
        "had returned before the second one was called, and every version of the partition that "
        "the second one may have shown is older than every one that the first one may have shown. "
        f"A read may have shown the versions, by the metadata log, that {_SAME}; of several, the "
        "one in force at the metadata offset that the answer tells.",
        meaning="A broker undid metadata that it had applied.",
        case="a read of a partition, after one of the same incarnation of its broker that showed "
        "more than the first version",
        source="KIP-631, the broker's metadata cache",
        strength=Strength.NEVER,
        needs=("metadata_log", "describes"),
    ),
    Entry(
        id="V7",
        name="stale-isr-read",
        title="A broker shows an ISR that was replaced long ago, though nothing is broken",
        kind=Kind.ANOMALY,
        rule="A read of a partition was called when nothing had been broken, and its broker had "
        "been unfenced, for the time that the scenario gives brokers to catch up; and every "
        "version of the partition that it may have shown had been replaced for longer than the "
        "greatest age. The workload of metadata promises both (`settle_ms`, "
        "`settled_age_max_ms`); where it does not, both are the scenario's `recovery_limit`. Which "
        "versions a read may have shown is said at isr-read-went-back.",
        meaning="A broker has stopped to follow the metadata log, and serves on.",
        case="a read of a partition that had another version before, while nothing is broken",
        source="KIP-500; KIP-1243",
        strength=Strength.NEVER,
        needs=("metadata_log", "describes"),
    ),
    Entry(
        id="V8",
        name="nonrepeatable-isr-read",
        title="Reads of the ISR through different brokers go back",
        kind=Kind.ANOMALY,
        rule="As isr-read-went-back, of two brokers, the second one unfenced from the call to the "
        "return. Judged of reads that are called once a broker was told a lowest acknowledged "
        "offset at or above the record of the level of metadata.version, while that level reigns. "
        "Where nothing is told, nothing is judged.",
        meaning="A client that changes its broker is put back in time, where that is promised not "
        "to happen.",
        case="a read of a partition, after one through another broker that showed more than the "
        "first version, where brokers are told the lowest acknowledged offset",
        source=_ACKNOWLEDGED,
        strength=Strength.NEVER,
        needs=("metadata_log", "describes", "wire"),
    ),
)
"""Of reads of partitions against the versions in the metadata log."""

TOLD_ENTRIES: Final = (
    Entry(
        id="V4",
        name="false-lowest-acknowledged-offset",
        title="A broker is told that all have acknowledged what some have not",
        kind=Kind.ANOMALY,
        rule="The answer to a heartbeat named a lowest acknowledged metadata offset, and a broker "
        "that its controller held for unfenced, from the request's being passed on to the answer's "
        "arriving, had not acknowledged it by then in a heartbeat of its registration; or a higher "
        "one had been told before the request was passed on, in the same term of a controller or "
        "an earlier one. Where nothing is told, nothing is judged.",
        meaning="Brokers show metadata that others do not know yet, or hide what they had shown.",
        case="an answer to a heartbeat that tells a lowest acknowledged offset, and a broker or an "
        "earlier answer to hold it against",
        source=_ACKNOWLEDGED,
        strength=Strength.NEVER,
        needs=("metadata_log", "wire"),
    ),
    Entry(
        id="V5",
        name="early-renegotiation",
        title="A broker offers the APIs of a level that another one does not know yet",
        kind=Kind.ANOMALY,
        rule="A broker answered ApiVersions with a level of metadata.version, and a broker that "
        "was unfenced, from the request to the answer, had not acknowledged the record of that "
        "level by then in a heartbeat of its registration. Judged of levels at which brokers are "
        "told the lowest acknowledged offset.",
        meaning="A client speaks in a way that another broker does not understand.",
        case="an answer to ApiVersions that offers a level at which brokers are told the lowest "
        "acknowledged offset",
        source=f"{_ACKNOWLEDGED}; KIP-584",
        strength=Strength.NEVER,
        needs=("metadata_log", "wire"),
    ),
)
"""Of what brokers are told and offer: judged with the checks of the control plane."""
