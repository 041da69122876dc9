"""What the catalogue says of the checks of transactions."""

from typing import Final

from checkers.entry import Entry, Kind, Strength

__all__ = ["GROUP_OFFSET", "HANGING", "PRECOMMITTED_READ", "SKIPPED_SEND", "TORN"]

_RECORDED: Final = ("operations", "records", "transactions")

SKIPPED_SEND: Final = Entry(
    id="D9",
    name="skipped-send",
    title="Others stand between the records of a transaction",
    kind=Kind.ANOMALY,
    rule="Two neighbouring records that a transaction sent to a key stand more than one position "
    "apart, the later one behind.",
    meaning="Transactions of several producers share the partition, as they may.",
    case="a step from a transaction's record to its next one on the key, both offsets known",
    source="Jepsen, workload `kafka`, `int-send-skip`; a partition keeps the order of a producer's "
    "records, and nothing more",
    strength=Strength.FIGURE,
    needs=_RECORDED,
)

PRECOMMITTED_READ: Final = Entry(
    id="D10",
    name="precommitted-read",
    title="A value was read before its transaction was to be committed",
    kind=Kind.ANOMALY,
    rule="An ok read at read_committed, of whatever client, had returned a value before the client "
    "that had sent it called commit or abort of its transaction.",
    meaning="Consumers act on what may still be taken back.",
    case="a read of a record whose transaction its client committed or aborted",
    source="Jepsen, workload `kafka`, `precommitted-read`; KIP-98",
    strength=Strength.NEVER,
    needs=_RECORDED,
)

TORN: Final = Entry(
    id="D11",
    name="torn-transaction",
    title="Half of a transaction is readable",
    kind=Kind.ANOMALY,
    rule="Of a transaction whose commit was acknowledged, or of which a value was read though its "
    "commit was not, an ok read at read_committed returned one value, and no ok read another; of "
    "that one's key a complete final read was called after the acknowledgement (or after the read "
    "that shows that it was committed). Where there was no such final read, the key is unknown.",
    meaning="Consumers acted on a part of what was to happen as a whole.",
    case="a committed transaction of which some value was read and several ought to be",
    source="KIP-98; Adya, Liskov, O'Neil 2000, G1b",
    strength=Strength.NEVER,
    needs=("transactions",),
)

HANGING: Final = Entry(
    id="D12",
    name="hanging-transaction",
    title="A transaction that nobody can end holds up the readers",
    kind=Kind.ANOMALY,
    rule="Every producer has ended and every transaction has had the time to be aborted at its "
    "time-out, and the last stable offset of a key is below its high watermark. Or it had caught "
    "up, and in the end the log of each replica that goes so far has transactional records without "
    "a marker. A key with transactions whose last stable offset was not seen so late is unknown.",
    meaning="No consumer at read_committed is given any later record of the key.",
    case="a key that a transaction wrote to and whose last stable offset was asked for",
    source="KIP-890; KAFKA-14402",
    strength=Strength.NEVER,
    needs=("transactions", "stable_offsets"),
)

GROUP_OFFSET: Final = Entry(
    id="D19",
    name="wrong-group-offset",
    title="A group is told another offset than was committed",
    kind=Kind.ANOMALY,
    rule="A transactional producer asked its group for the committed offset of a key, and was told "
    "one that no transaction had sent which may have been committed; or an older one, or none, "
    "though a later one had been committed before it asked (acknowledged, or seen in an earlier "
    "answer) and was sent after the older one had been. What nobody asked for is not judged.",
    meaning="Records are taken in twice, or never, although each transaction is whole.",
    case="an answer that tells a group its committed offset of a key",
    source="KIP-98; KIP-447",
    strength=Strength.NEVER,
    needs=("group_offsets",),
)
