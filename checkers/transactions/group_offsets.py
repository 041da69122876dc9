"""D19 wrong-group-offset: A group is told another offset than was committed.

A transactional producer asked its group for the committed offset of a key, and was told one that no
transaction had sent which may have been committed; or an older one, or none, though a later one had
been committed before it asked (acknowledged, or seen in an earlier answer) and was sent after the
older one had been. An offset that was never asked for is not judged.

A producer that consumes, transforms and produces sends the offsets that it read up to with its
transactions, and asks its group where to read on. The committed offset of a key is a register:
sendings write it, questions read it. A sending takes effect at one moment between its call and the
acknowledgement of its commit, and at none if its transaction was surely aborted; so an answer must
be an offset that some sending wrote, or none (-1) before there was any, and it must not be an
*older* one: one that was overwritten, for sure, by a sending that had taken effect, for sure,
before the question was called.

The certain fact about a sending is the latest time by which it had taken effect: when its commit
was acknowledged, or when the first answer returned that can only be of it (a crashed commit that
was seen is one). A sending came before another if it had taken effect when that one was called.
Clients ask at read_committed, so that the broker waits for transactions whose end is decided and
not yet written to the group's log (`require_stable`, KIP-447): the commit that was acknowledged
counts from then on.

A coordinator that was deposed and does not know it yet may tell what it knew last. That is no
excuse: the client that was told consumes again what was consumed.

The condition is necessary for a linearizable register and cannot accuse a correct one; it does not
find all that a search would. An offset that no client asked for is not judged.

Meaning: Records are taken in twice, or never, although each transaction is whole.
Case: an answer that tells a group its committed offset of a key
Source: KIP-98, KIP-447; Gibbons and Korach 1997 for reads of a register
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.table_check import TableCheck
from fencepost.history.operation import FETCH_OFFSETS, SEND_OFFSETS, Outcome

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.CLIENT,
    needs=("group_offsets",),
)
NAME: Final = ENTRY.name

_NOTHING: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sending:
    """An offset that was sent for one key."""

    index: int
    offset: int
    outcome: str
    call_ns: int
    done_ns: int
    """The time by which it had surely taken effect; `OPEN_NS` if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """The answer about one key."""

    index: int
    offset: int
    call_ns: int
    return_ns: int


def wrong_group_offsets(tables: Tables, _: MetadataView) -> Judged:
    """Yield the findings by key and group. Reads `group_offsets`."""
    sendings: dict[tuple[str, str], list[_Sending]] = defaultdict(list)
    answers: dict[tuple[str, str], list[_Answer]] = defaultdict(list)
    for row in tables["group_offsets"].sort_by("index").to_pylist():
        for key, offset in zip(row["keys"], row["offsets"], strict=False):
            if row["f"] == SEND_OFFSETS:
                sendings[row["group"], key].append(_sending(row, offset))
            elif row["f"] == FETCH_OFFSETS and row["outcome"] == Outcome.OK.value:
                answers[row["group"], key].append(_answer(row, offset))
    for group, key in sorted(sendings.keys() | answers.keys()):
        told = f"{key} of {group}"
        yield told, _judged(told, sendings[group, key], answers[group, key])


def _sending(row: Mapping[str, Any], offset: int) -> _Sending:
    known = row["outcome"] == Outcome.OK.value and row["return_ns"] is not None
    return _Sending(
        index=row["index"],
        offset=offset,
        outcome=row["outcome"],
        call_ns=row["call_ns"],
        done_ns=row["return_ns"] if known else OPEN_NS,
    )


def _answer(row: Mapping[str, Any], offset: int) -> _Answer:
    return _Answer(
        index=row["index"], offset=offset, call_ns=row["call_ns"], return_ns=row["return_ns"]
    )


def _judged(told: str, sendings: Sequence[_Sending], answers: Sequence[_Answer]) -> Found:
    register = _Register(_as_seen(sendings, answers))
    wrong = [proof for answer in answers for proof in register.against(answer)]
    return found(
        NAME, told, cases=len(answers), never=np.arange(len(wrong)), proof=wrong.__getitem__
    )


def _as_seen(sendings: Sequence[_Sending], answers: Iterable[_Answer]) -> list[_Sending]:
    """Return the sendings; one that alone explains an answer is done when that had returned."""
    by_offset = _by_offset(sendings)
    seen_ns: dict[int, int] = {}
    for answer in answers:
        possible = [one for one in by_offset[answer.offset] if one.call_ns <= answer.return_ns]
        if len(possible) == 1:
            index = possible[0].index
            seen_ns[index] = min(answer.return_ns, seen_ns.get(index, OPEN_NS))
    return [
        _Sending(
            index=one.index,
            offset=one.offset,
            outcome=one.outcome,
            call_ns=one.call_ns,
            done_ns=min(one.done_ns, seen_ns.get(one.index, OPEN_NS)),
        )
        for one in sendings
    ]


class _Register:
    """The committed offset of one key in one group."""

    def __init__(self, sendings: Sequence[_Sending]) -> None:
        self._sendings = sendings
        self._by_offset = _by_offset(sendings)
        done = sorted(
            (one for one in sendings if one.done_ns < OPEN_NS), key=lambda one: one.done_ns
        )
        self._done_ns = [one.done_ns for one in done]
        # By place: of those done up to it, the one that was called last, for it overwrote the most.
        self._latest = list(accumulate(done, _later))

    def against(self, answer: _Answer) -> list[Proof]:
        """Return the proofs that this answer is wrong; none if it can be right."""
        before = bisect_left(self._done_ns, answer.call_ns)
        latest = self._latest[before - 1] if before else None
        if answer.offset == _NOTHING:
            return (
                [] if latest is None else [_proof(answer, latest, Proof.of("nothing is committed"))]
            )
        possible = [
            one for one in self._by_offset[answer.offset] if one.call_ns <= answer.return_ns
        ]
        if not possible:
            return [_proof(answer, latest, self._origin(answer))]
        if latest is None or any(one.done_ns >= latest.call_ns for one in possible):
            return []
        older = max(possible, key=lambda one: one.done_ns)
        sent = "{offset} is committed, which row {sent_by} sent"
        told = Proof.of(sent, offsets={"offset": answer.offset}, sent_by=older.index)
        return [_proof(answer, latest, told)]

    def _origin(self, answer: _Answer) -> Proof:
        """Return the origin of an offset that may not have been committed by then."""
        failed = [
            one.index
            for one in self._sendings
            if one.offset == answer.offset and one.outcome == Outcome.FAIL.value
        ]
        offset = {"offset": answer.offset}
        if failed:
            rule = "{offset} is committed, which row {sent_by} sent and which was aborted"
            return Proof.of(rule, offsets=offset, sent_by=failed[0])
        return Proof.of("{offset} is committed, which no row had sent", offsets=offset)


def _later(one: _Sending, other: _Sending) -> _Sending:
    return one if one.call_ns >= other.call_ns else other


def _by_offset(sendings: Iterable[_Sending]) -> Mapping[int, Sequence[_Sending]]:
    """Return by offset the sendings that may have been committed."""
    found_ones: dict[int, list[_Sending]] = defaultdict(list)
    for one in sendings:
        if one.outcome != Outcome.FAIL.value:
            found_ones[one.offset].append(one)
    return found_ones


def _proof(answer: _Answer, latest: _Sending | None, told: Proof) -> Proof:
    proof = Proof.of(
        "row {row} of group_offsets was told that {told}",
        row=answer.index,
        told=told,
    )
    if latest is None:
        return proof
    return proof.further(
        "; row {latest_row} had committed {latest_offset} before",
        offsets={"latest_offset": latest.offset},
        latest_row=latest.index,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=wrong_group_offsets,
    ),
)
