"""V4 false-lowest-acknowledged-offset: a broker is told that all have what some lack.

Where the protocol has it, the answer to a heartbeat names the lowest metadata offset that every
unfenced broker has acknowledged, and brokers show what lies at or below it. Two things make such a
word false:

1. a broker that the controller surely held for unfenced all the time from the request's being
   passed on to its answer's arriving had not acknowledged that offset by then
   (`visibility.acknowledgements`);
2. it went back: a higher one was told before, to whomever. Before means that the answer with the
   higher one had arrived at the proxy when the request for the lower one was passed on. A deposed
   controller may answer late and from what it knew: only what a controller told in the same term or
   an earlier one is held against it. The controllers' epochs are not in the frames. So the later
   word is taken for that of the last term that its node surely had begun, and the earlier word for
   that of the last one that its node can have begun.

Nothing is judged where nothing is told, as by every release of Kafka.

Source: the draft that adds LowestAcknowledgedOffset to BrokerHeartbeat, "Read-after-write
visibility".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from checkers.entry import CatalogueEntry
from checkers.facts import Judged, Tables
from checkers.metadata.rpcs import Rpc, in_turn, rpcs
from checkers.metadata.sessions import Term, term_of_node
from checkers.metadata.view import MetadataView, doubtful, spelled
from checkers.proof import Proof
from checkers.table_check import TableCheck
from checkers.visibility.acknowledgements import SOURCE, Acknowledgements, Bound

__all__ = ["CHECKS", "NAME", "false_lowest_offsets", "told_lowest"]

NAME: Final = "false-lowest-acknowledged-offset"

_COLUMN: Final = "lowest_acknowledged_offset"


def told_lowest(rpc: Rpc) -> int | None:
    """Return the lowest acknowledged offset in the answer to a heartbeat; None without one."""
    told = rpc.answered(_COLUMN)
    return int(told) if rpc.ok and told is not None and rpc.reached_ns is not None else None


def false_lowest_offsets(tables: Tables, seen: MetadataView) -> Judged:
    """Yield the findings on what brokers were told. Reads `metadata_log` and `wire`."""
    heartbeats = tuple(rpcs(tables["wire"], "BrokerHeartbeat"))
    telling = [rpc for rpc in heartbeats if told_lowest(rpc) is not None]
    if telling and seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    told: dict[str, list[Proof]] = {rpc.source: [] for rpc in telling}
    judged: dict[str, set[int]] = {rpc.source: set() for rpc in telling}
    acknowledged = Acknowledgements(seen, heartbeats)
    for rpc in telling:
        answers = list(_compared(rpc, acknowledged))
        judged[rpc.source] |= {rpc.frame} if answers else set()
        told[rpc.source] += [one for one in answers if one is not None][:1]
    for rpc, highest in _told_before(telling, seen.terms):
        judged[rpc.source].add(rpc.frame)
        if (told_lowest(rpc) or 0) < (told_lowest(highest) or 0):
            told[rpc.source].append(_back(rpc, highest))
    for node in sorted(told):
        yield node, spelled(NAME, node, told[node], cases=len(judged[node]))


def _compared(rpc: Rpc, acknowledged: Acknowledgements) -> Iterator[Proof | None]:
    """Judge each broker by rule 1: a proof if it lacks what was told."""
    lowest = told_lowest(rpc)
    assert lowest is not None
    assert rpc.reached_ns is not None
    assert rpc.answered_ns is not None
    for one in acknowledged.bound(rpc.target, from_ns=rpc.reached_ns, until_ns=rpc.answered_ns):
        yield _lacks(rpc, one, lowest) if one.acknowledged < lowest else None


def _lacks(rpc: Rpc, one: Bound, lowest: int) -> Proof:
    return Proof.of(
        "{target} told {source} at {answered} that every unfenced broker has "
        "acknowledged metadata offset {lowest} (frame {answer_frame}), and broker "
        "{broker_id} (broker epoch {broker_epoch}), unfenced, had acknowledged "
        + ("no metadata offset" if one.acknowledged < 0 else "no more than {acknowledged}"),
        metadata_offsets={"acknowledged": one.acknowledged, "lowest": lowest},
        values={"broker_epoch": one.broker_epoch},
        frames={"frame": rpc.frame, "answer_frame": rpc.answer_frame},
        times={"answered": rpc.answered_ns or 0},
        sources={"lowest": "answer_frame", "answered": "answer_frame"},
        target=rpc.target,
        source=rpc.source,
        broker_id=one.broker_id,
    )


@dataclass(slots=True)
class _Highest:
    """The highest that was told by then, by the term that its teller had begun at most."""

    by_term: dict[int, Rpc] = field(default_factory=dict)

    def add(self, rpc: Rpc, begin_offset: int) -> None:
        known = self.by_term.get(begin_offset)
        if known is None or (told_lowest(rpc) or 0) > (told_lowest(known) or 0):
            self.by_term[begin_offset] = rpc

    def up_to(self, begin_offset: int) -> Rpc | None:
        able = [rpc for term, rpc in self.by_term.items() if term <= begin_offset]
        return max(able, key=lambda rpc: told_lowest(rpc) or 0, default=None)


def _told_before(telling: Sequence[Rpc], terms: Sequence[Term]) -> Iterator[tuple[Rpc, Rpc]]:
    """Yield the pairs of rule 2: (an answer, the one that had told most before it)."""
    highest = _Highest()
    for rpc, answered in in_turn(telling):
        assert rpc.reached_ns is not None
        for earlier in answered:
            highest.add(earlier, _last_begun(terms, earlier))
        term = term_of_node(terms, rpc.target, rpc.reached_ns)
        most = None if term is None else highest.up_to(term.begin_offset)
        if most is not None:
            yield rpc, most


def _last_begun(terms: Sequence[Term], rpc: Rpc) -> int:
    """Return the begin offset of the last term that the teller can have been in, or -1."""
    begun = [
        term.begin_offset
        for term in terms
        if term.node == rpc.target and term.begin_earliest_ns <= (rpc.answered_ns or 0)
    ]
    return max(begin for begin in (*begun, -1))


def _back(rpc: Rpc, higher: Rpc) -> Proof:
    low, high = told_lowest(rpc), told_lowest(higher)
    assert low is not None
    assert high is not None
    return Proof.of(
        "{target} told {source} at {answered} that every unfenced broker has "
        "acknowledged metadata offset {high} (frame {answer_frame}), and "
        "{rpc_target}, in the same term or a later one, told {rpc_source} at "
        "{rpc_answered} that it is {low} (frame {rpc_answer_frame})",
        metadata_offsets={"high": high, "low": low},
        frames={"frame": higher.frame, "answer_frame": higher.answer_frame}
        | {"rpc_frame": rpc.frame, "rpc_answer_frame": rpc.answer_frame},
        times={"answered": higher.answered_ns or 0, "rpc_answered": rpc.answered_ns or 0},
        sources={"high": "answer_frame", "low": "rpc_answer_frame"},
        target=higher.target,
        source=higher.source,
        rpc_target=rpc.target,
        rpc_source=rpc.source,
    )


CHECKS: Final = (
    TableCheck(
        entry=CatalogueEntry(
            id="V4",
            name=NAME,
            title="A broker is told that all have acknowledged what some have not",
            rule="The answer to a heartbeat named a lowest acknowledged metadata offset, and a "
            "broker that its controller held for unfenced, from the request's being passed on to "
            "the answer's arriving, had not acknowledged it by then in a heartbeat of its "
            "registration; or a higher one had been told before the request was passed on, in the "
            "same term of a controller or an earlier one. Where nothing is told, nothing is "
            "judged.",
            meaning="Brokers show metadata that others do not know yet, or hide what they had "
            "shown.",
            case="an answer to a heartbeat that tells a lowest acknowledged offset, and a broker "
            "or an earlier answer to hold it against",
            source=SOURCE,
            rests_on=("whole-tape",),
            needs=("metadata_log", "wire"),
        ),
        kernel=false_lowest_offsets,
        apis=("BrokerHeartbeat",),
    ),
)
