"""Every check by name: what it looks for, why that is wrong, how wrong, and where the rule is from.

The catalogue is the one list of checks. A verdict has one answer an entry that was asked, in this
order; the documentation is generated from it (`checkers.anomalies_page`); scenarios name what they
expect by these names. Groups of checks keep their entries beside their kernels.
"""

from collections.abc import Collection
from typing import Final

from checkers.control_plane.entries import CONTROL_PLANE_ENTRIES
from checkers.cycles.entries import CYCLE, LIST_ENTRIES, TRANSACTION_CYCLE
from checkers.data_plane.lag_entry import REAL_TIME_LAG
from checkers.entry import Entry, Kind, Strength
from checkers.grounds.node_entries import FATAL_FAULT, HEALTHY_PROCESSES, UNREADABLE_DISK
from checkers.life_cycle.entries import LIFE_CYCLE_ENTRIES
from checkers.linearizability.entries import MODEL_ENTRIES
from checkers.replicas.entries import REPLICA_ENTRIES
from checkers.transactions.entries import (
    GROUP_OFFSET,
    HANGING,
    PRECOMMITTED_READ,
    SKIPPED_SEND,
    TORN,
)
from checkers.visibility.entries import ISR_ENTRIES, TOLD_ENTRIES, VISIBILITY

__all__ = ["CATALOGUE", "Entry", "Kind", "Strength", "asked", "entry_of", "names_of"]

_VALUES: Final = ("unique-values",)
_ENTRIES: Final = ("unique-values", "sent-values")
_ORDER: Final = ("dense-indices", "one-poll-at-a-time", "whole-records")
_ABSENCE: Final = ("unique-values", "whole-records")
_OPERATIONS: Final = ("operations", "records")
_JEPSEN: Final = "Jepsen, workload `kafka`"

_ASSUMPTIONS: Final = (
    Entry(
        id="A1",
        name="dense-indices",
        title="Operation indices are dense",
        kind=Kind.ASSUMPTION,
        rule="The indices of the operations are 0, 1, 2, …, each once, in the order of the files.",
        meaning="A hole means that operations were lost on the way from the client to the history.",
        case="an operation",
        source="history/schema.py, OPERATIONS",
        strength=Strength.NEVER,
        needs=_OPERATIONS,
    ),
    Entry(
        id="A2",
        name="one-poll-at-a-time",
        title="A process has one poll open at a time",
        kind=Kind.ASSUMPTION,
        rule="A poll of a process is called no earlier than its last one returned.",
        meaning="Otherwise the polls of a process have no order that could be checked.",
        case="a poll",
        source="history/schema.py, OPERATIONS",
        strength=Strength.NEVER,
        needs=_OPERATIONS,
    ),
    Entry(
        id="A3",
        name="whole-records",
        title="Every record of every operation is in the history",
        kind=Kind.ASSUMPTION,
        rule="For each kind of operation, the records in the bucket files are as many as the "
        "operations count, and every bucket file could be read.",
        meaning="Otherwise a value that nobody read may have been read and not written down.",
        case="a record",
        source="history/schema.py, RECORDS",
        strength=Strength.NEVER,
        needs=_OPERATIONS,
    ),
    Entry(
        id="A4",
        name="unique-values",
        title="Values are unique a key",
        kind=Kind.ASSUMPTION,
        rule="No two sends to a key carry one value. Judged key by key.",
        meaning="Records are told apart by their values.",
        case="a send",
        source="history/schema.py",
        strength=Strength.NEVER,
        needs=_OPERATIONS,
    ),
    Entry(
        id="A5",
        name="sent-values",
        title="Every value that was read was sent",
        kind=Kind.ASSUMPTION,
        rule="Each value that a poll of whatever outcome returned is the value of some recorded "
        "send to that key.",
        meaning="A record of a stranger, a corrupted record or a hole in the recording: the "
        "history cannot tell which.",
        case="a record that was read",
        source="history/schema.py; the recorder writes an invocation down before it is sent",
        strength=Strength.NEVER,
        needs=_OPERATIONS,
    ),
)

_GROUNDS: Final = (
    Entry(
        id="G0",
        name="as-planned",
        title="The run went as planned, to its end",
        kind=Kind.GROUND,
        rule="The manifest has the end of the run and no shortfall: every step of the play was "
        "done, every await was met, no node or client died by itself, the cluster recovered "
        "after healing, every key was read to its end, and no client's recording is cut short.",
        meaning="A schedule that was not performed proves nothing about what it would have done.",
        case="a run that was recorded to its end",
        source="history/manifest.py, shortfalls",
        strength=Strength.NEVER,
    ),
    Entry(
        id="G1",
        name="statistics",
        title="What was done, and how it went",
        kind=Kind.GROUND,
        rule="Operations by kind and outcome before, during, between and after the faults and "
        "during each fault, each counted where it was called; errors by name, and how many are not "
        "in the error registry; latencies.",
        meaning="Figures for people; they decide nothing.",
        case="an operation",
        source="Jepsen, checkers `stats` and `perf`",
        strength=Strength.FIGURE,
        needs=_OPERATIONS,
    ),
    Entry(
        id="G2",
        name="fault-effects",
        title="The faults that were asked for took effect",
        kind=Kind.GROUND,
        rule="Of the kinds of fault that the run was asked for, some fault has the time at which "
        "its effect was seen; so has one of each kind that the scenario demands (`require: "
        "{faults: […]}`), and each step of a play. A drawn fault without effect is counted, and no "
        "more.",
        meaning="A run whose faults did nothing proves nothing about faults.",
        case="a fault that began",
        source="history/schema.py, FAULTS",
        strength=Strength.NEVER,
        needs=_OPERATIONS,
    ),
    Entry(
        id="G3",
        name="evidence",
        title="Enough was done to tell",
        kind=Kind.GROUND,
        rule="There are acknowledged sends, ok polls that returned something and complete final "
        "reads; and for each kind of fault that took effect, or of these each that the scenario "
        "names (`require: {served: […]}`), acknowledged sends and non-empty ok polls among the "
        "operations called during one, from its effect to its heal being seen.",
        meaning="A cluster that does nothing breaks no promise.",
        case="something that has to be there: acknowledged sends, reads, final reads, and both "
        "during each kind of fault",
        source="Jepsen, checker `stats`",
        strength=Strength.NEVER,
        needs=_OPERATIONS,
    ),
)

_RECORDINGS: Final = Entry(
    id="G7",
    name="recordings",
    title="What the run set out to record of its cluster is there",
    kind=Kind.GROUND,
    rule="Of a run that came to its end, each table that it set out to record and that such a run "
    "always fills holds something: the tape, the metadata log, metadata offsets, metadata reads, "
    "claims to lead the quorum, replicas, their records, settings.",
    meaning="A run whose tape is lost looks like one in which nothing went wrong.",
    case="a table that the run set out to record and has to fill",
    source="checkers/grounds/recordings.py",
    strength=Strength.NEVER,
    needs=_OPERATIONS,
)

_REQUIRED: Final = Entry(
    id="G8",
    name="required-checks",
    title="What the scenario demands to be judged was judged",
    kind=Kind.GROUND,
    rule="Each check that the scenario demands (`require: {judged: […]}`) was asked, had a case to "
    "judge, and can fail on this cluster.",
    meaning="A run that is about one promise says nothing if nothing could have broken it.",
    case="a check that the scenario demands",
    source="a check that cannot fail is not yet a check",
    strength=Strength.NEVER,
)

_DATA_PLANE: Final = (
    Entry(
        id="D1",
        name="lost-write",
        title="A record is missing below what was read",
        kind=Kind.ANOMALY,
        rule="The bound is the highest position that any ok read reached. Each value at or below "
        "it that must have happened and that no ok read returned is lost; so is each acknowledged "
        "value that an ok read returned and a complete final read called after both did not. Where "
        "no read went over its place and no complete final read followed, the key is unknown "
        "instead.",
        meaning="An acknowledged record is gone, while later ones are there.",
        case="an acknowledged record that was read, or any that must have been written and that a "
        "read should have returned",
        source=f"{_JEPSEN}, `lost-write`",
        strength=Strength.NEVER,
        rests_on=_ABSENCE,
        needs=_OPERATIONS,
    ),
    Entry(
        id="D2",
        name="aborted-read",
        title="A failed send, or one of an aborted transaction, was read",
        kind=Kind.ANOMALY,
        rule="An ok read returned a value whose send failed. A send of a transaction failed if an "
        "abort was acknowledged, or if a commit was never asked for; reads are then at "
        "read_committed.",
        meaning="The producer was told that the record does not exist, or saw to it, and a "
        "consumer got it.",
        case="a record whose send failed, or that an aborted transaction sent",
        source=f"Adya, Liskov, O'Neil 2000, G1a; {_JEPSEN}, `G1a`",
        strength=Strength.NEVER,
        rests_on=_VALUES,
        needs=_OPERATIONS,
    ),
    Entry(
        id="D3",
        name="inconsistent-offset",
        title="One offset, two values",
        kind=Kind.ANOMALY,
        rule="Two values stand at one offset, in reads of whatever outcome and in the offsets of "
        "sends that must have happened.",
        meaning="Two readers, or a producer and a reader, were shown different logs.",
        case="an offset that was acknowledged or read more than once",
        source=f"{_JEPSEN}, `inconsistent-offsets`",
        strength=Strength.NEVER,
        rests_on=_ENTRIES,
        needs=_OPERATIONS,
    ),
    Entry(
        id="D4",
        name="duplicate",
        title="One value, two offsets",
        kind=Kind.ANOMALY,
        rule="One value stands at two offsets.",
        meaning="A record was appended twice, as a retry may do without idempotence.",
        case="a value of the log whose producer had given up on no send",
        source=f"{_JEPSEN}, `duplicate`; KIP-98; KIP-360 for epochs that the client begins",
        strength=Strength.ALLOWED_IF,
        allowed_if="the producers were not idempotent, or the one that sent it had given up on a "
        "send: its next epoch knows nothing of the one before; or if the logs have each copy under "
        "a producer epoch of its own: then the client sent it again, and no broker could tell",
        promise="idempotent",
        rests_on=_ENTRIES,
        needs=_OPERATIONS,
    ),
    Entry(
        id="D5",
        name="nonmonotonic-poll",
        title="A consumer went back",
        kind=Kind.ANOMALY,
        rule="Delta below 1 between the last record of a process's last ok poll of the key and the "
        "first record of its next one. A new assignment forgets.",
        meaning="A consumer was given records again, without having asked for them.",
        case="a step from a process's ok poll of the key to its next one, within one session",
        source=f"{_JEPSEN}, `nonmonotonic-poll`",
        strength=Strength.ALLOWED_IF,
        allowed_if="consumers subscribed, and the step leads from one session of theirs to another "
        "or over a poll that crashed",
        rests_on=_ORDER,
        needs=_OPERATIONS,
    ),
    Entry(
        id="D6",
        name="skipped-poll",
        title="A consumer was not given records in between",
        kind=Kind.ANOMALY,
        rule="As nonmonotonic-poll, with delta above 1.",
        meaning="A consumer that goes on polling misses records for ever.",
        case="a step from a process's ok poll of the key to its next one, within one session",
        source=f"{_JEPSEN}, `poll-skip`",
        strength=Strength.ALLOWED_IF,
        allowed_if="consumers subscribed, and the step leads from one session of theirs to another "
        "or over a poll that crashed",
        rests_on=_ORDER,
        needs=_OPERATIONS,
    ),
    Entry(
        id="D7a",
        name="internal-nonmonotonic-poll",
        title="One poll returned records in the wrong order",
        kind=Kind.ANOMALY,
        rule="Delta below 1 between neighbours inside one ok poll or final read and one session.",
        meaning="A batch of records is out of order, or holds a record twice.",
        case="a step from a record to the next one within an ok poll or final read",
        source=f"{_JEPSEN}, `int-nonmonotonic-poll`",
        strength=Strength.NEVER,
        rests_on=("whole-records",),
        needs=_OPERATIONS,
    ),
    Entry(
        id="D7b",
        name="internal-skipped-poll",
        title="One poll left records out",
        kind=Kind.ANOMALY,
        rule="Delta above 1 between neighbours inside one ok poll or final read and one session.",
        meaning="A batch of records has a hole where the log holds a record.",
        case="a step from a record to the next one within an ok poll or final read",
        source=f"{_JEPSEN}, `int-poll-skip`",
        strength=Strength.NEVER,
        rests_on=("whole-records",),
        needs=_OPERATIONS,
    ),
    Entry(
        id="D8",
        name="nonmonotonic-send",
        title="A producer's records are not in the order it sent them",
        kind=Kind.ANOMALY,
        rule="Of two neighbouring sends of a process that are ok, the later one stands at an "
        "earlier position.",
        meaning="The order that a producer relies on within a partition was not kept.",
        case="a step from a process's ok send to the key to its next one",
        source=f"{_JEPSEN}, `nonmonotonic-send`; KIP-98",
        strength=Strength.ALLOWED_IF,
        allowed_if="the producers were not idempotent: with several batches in flight, a retry "
        "reorders them",
        promise="idempotent",
        rests_on=("dense-indices",),
        needs=_OPERATIONS,
    ),
    Entry(
        id="D13",
        name="unseen",
        title="An acknowledged record is not in the final read",
        kind=Kind.ANOMALY,
        rule="A value that was acknowledged before the last complete final read of its key was "
        "called, that no ok read returned, and that does not stand at or below the bound of "
        "lost-write. Unknown for a key with acknowledged sends and no complete final read.",
        meaning="An acknowledged record is gone, at the end of the log or with all of it.",
        case="an acknowledged record with a complete final read after it",
        source=f"{_JEPSEN}, `unseen`; KIP-207",
        strength=Strength.NEVER,
        rests_on=_ABSENCE,
        needs=_OPERATIONS,
    ),
    Entry(
        id="D18",
        name="vanished",
        title="A record that was read is not in the final read",
        kind=Kind.ANOMALY,
        rule="A value that an ok read returned, and that a complete final read of its key which "
        "was called afterwards did not return.",
        meaning="A consumer has acted on a record that the cluster no longer has. The consumers' "
        "side of a lost write: it asks for no acknowledgement.",
        case="a record that was read and has a complete final read after it",
        source="Apache Kafka's documentation, Replication: only committed records are given to "
        "consumers, and they are not lost; KIP-101, KIP-966",
        strength=Strength.NEVER,
        rests_on=_ABSENCE,
        needs=_OPERATIONS,
    ),
)

CATALOGUE: Final = (
    *_ASSUMPTIONS,
    *_GROUNDS,
    HEALTHY_PROCESSES,
    FATAL_FAULT,
    UNREADABLE_DISK,
    _RECORDINGS,
    _REQUIRED,
    *_DATA_PLANE,
    REAL_TIME_LAG,
    SKIPPED_SEND,
    PRECOMMITTED_READ,
    TORN,
    HANGING,
    CYCLE,
    *LIST_ENTRIES,
    TRANSACTION_CYCLE,
    *REPLICA_ENTRIES,
    GROUP_OFFSET,
    *CONTROL_PLANE_ENTRIES,
    *VISIBILITY,
    *TOLD_ENTRIES,
    *ISR_ENTRIES,
    *LIFE_CYCLE_ENTRIES,
    *MODEL_ENTRIES,
)
"""All checks, in the order of a verdict."""

_BY_NAME: Final = {entry.name: entry for entry in CATALOGUE}


def entry_of(name: str) -> Entry:
    """The entry of this name. Raises KeyError if the catalogue has none."""
    return _BY_NAME[name]


def asked(recorded: Collection[str]) -> tuple[Entry, ...]:
    """The entries that a run which recorded these tables has to answer, in order."""
    return tuple(entry for entry in CATALOGUE if set(entry.needs) <= set(recorded))


def names_of(kind: Kind) -> tuple[str, ...]:
    """The names of all checks of a kind, in order."""
    return tuple(entry.name for entry in CATALOGUE if entry.kind is kind)
