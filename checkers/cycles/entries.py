"""What the catalogue says of the checks of dependencies between transactions."""

from typing import Final

from checkers.entry import Entry, Kind, Strength

__all__ = ["CYCLE", "LIST_ENTRIES", "TRANSACTION_CYCLE"]

_ELLE: Final = "Kingsbury, Alvaro 2020 (Elle)"
_ADYA: Final = "Adya, Liskov, O'Neil 2000"
_WEAKER: Final = "the transactions were promised a weaker isolation than the one that forbids it"
_NEEDS: Final = ("micro_operations",)

CYCLE: Final = Entry(
    id="D14a",
    name="dependency-cycle",
    title="Transactions precede each other in a circle",
    kind=Kind.ANOMALY,
    rule="Nodes are the transactions that took place; edges are ww (it appended the next element), "
    "wr (it read what the other appended), rw (it did not see what the other appended), the order "
    "of a process, and real time (one returned before the other was called). Each strongly "
    "connected component that holds none of a graph with fewer kinds of edges is one anomaly: G0, "
    "G1c, G-single, G-nonadjacent or G2-item, with -process or -realtime where it needs these. "
    "Forbidden by read-uncommitted (G0), read-committed (G1c), snapshot (G-single, G-nonadjacent), "
    "serializable (G2-item), strict-serializable (all with -process or -realtime).",
    meaning="No order of the transactions, one after the other, explains what they saw.",
    case="a transaction that was acknowledged, or of which an acknowledged one read",
    source=f"{_ADYA}; {_ELLE}; Cerone, Gotsman 2018 for snapshot",
    strength=Strength.ALLOWED_IF,
    allowed_if=_WEAKER,
    needs=_NEEDS,
)


def _of_lists(  # noqa: PLR0917  # a row of a table
    number: str, name: str, title: str, rule: str, meaning: str, case: str, source: str
) -> Entry:
    return Entry(
        id=f"D14{number}",
        name=name,
        title=title,
        kind=Kind.ANOMALY,
        rule=rule,
        meaning=meaning,
        case=case,
        source=source,
        strength=Strength.ALLOWED_IF,
        allowed_if=_WEAKER,
        needs=_NEEDS,
    )


LIST_ENTRIES: Final = (
    _of_lists(
        "b",
        "aborted-element",
        "An element of a failed transaction was read",
        "An ok transaction read an element that a transaction which failed appended. Forbidden by "
        "read-committed.",
        "Somebody acted on what was undone.",
        "an element that a failed transaction appended to a list that was read",
        f"{_ADYA}, G1a; {_ELLE}",
    ),
    _of_lists(
        "c",
        "garbage-element",
        "An element was read that nobody appended",
        "No transaction of whatever outcome appended it to that key. Forbidden by every isolation.",
        "Data came out of nowhere, or into the wrong list.",
        "an element of a key's longest read, or of one that is no prefix of it",
        _ELLE,
    ),
    _of_lists(
        "d",
        "duplicate-element",
        "A list has an element twice",
        "A read has one value twice, which was appended once. Forbidden by every isolation.",
        "An append took effect twice, as a retry may do.",
        "an element of a key's longest read, or of one that is no prefix of it",
        _ELLE,
    ),
    _of_lists(
        "e",
        "incompatible-order",
        "Two reads of a list contradict each other",
        "Neither of two reads of a key is a prefix of the other; or what one transaction appended "
        "to it is not there in its order. Forbidden by every isolation, where the elements at "
        "which the reads differ are both of transactions that were acknowledged; else by "
        "read-committed.",
        "There is no one history of the list: replicas diverged, or appends were lost.",
        "a read beside the longest one of its key, or two neighbouring appends of a transaction of "
        "which the later one was read",
        _ELLE,
    ),
    _of_lists(
        "f",
        "intermediate-read",
        "The middle of a transaction was read",
        "The last element of a read is one after which its transaction appended another one to the "
        "same key. Forbidden by read-committed.",
        "Somebody acted on a state that was never meant to be seen.",
        "a read that ends with an element of another transaction, which appended several",
        f"{_ADYA}, G1b; {_ELLE}",
    ),
    _of_lists(
        "g",
        "dirty-update",
        "A transaction was committed on top of one that failed",
        "In a read, an element of a failed transaction comes before one of an acknowledged one. "
        "Forbidden by read-committed.",
        "What was undone lives on in what was built on it.",
        "an element that a failed transaction appended to a list that was read",
        _ELLE,
    ),
    _of_lists(
        "h",
        "internal-inconsistency",
        "A transaction contradicts itself",
        "A read does not show what the transaction's read of the key before showed and what it "
        "appended since, or shows what it appends later. Forbidden by snapshot; by every isolation "
        "where its own appends are missing or early.",
        "Within a transaction, reads cannot be relied upon.",
        "a read of a list that its transaction reads or appends to elsewhere, too",
        f"{_ELLE}; Cerone, Gotsman 2018, axiom Int",
    ),
    _of_lists(
        "i",
        "lost-update",
        "Several transactions updated the same version",
        "Several acknowledged transactions read the whole of what was ever read of a key and then "
        "appended to it. Forbidden by snapshot. (Where the appends were read, it is a "
        "dependency-cycle.)",
        "One of them overwrote the others without having seen them.",
        "a transaction that read a list and appended to it afterwards",
        f"{_ADYA}; Berenson et al. 1995, P4",
    ),
)

TRANSACTION_CYCLE: Final = Entry(
    id="D14k",
    name="transaction-cycle",
    title="Kafka's transactions precede each other in a circle",
    kind=Kind.ANOMALY,
    rule="Nodes are the moments of each record's append, each commit and each ok read at "
    "read_committed; edges are ww (neighbours in a partition's log), wr (a commit before the read "
    "of one of its records), the order of a process (begin, appends, commit, next begin; its "
    "reads), and real time. Every cycle of these is an anomaly (never). A cycle of whole "
    "transactions by ww alone is reported and legal.",
    meaning="A record stands in the log before one that was there already, or was read before it "
    "was committed or sent.",
    case="a transaction that was to be committed, did not fail, and has a record in some log",
    source=f"KIP-98; {_ADYA}",
    strength=Strength.ALLOWED_IF,
    allowed_if="only the writes of transactions that were open at the same time are ordered in a "
    "circle, over several partitions (G0): Kafka does not isolate writers from each other",
    needs=("transactions", "operations", "records"),
)
