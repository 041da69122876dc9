"""V4 false-lowest-acknowledged-offset: A broker is told that all have acknowledged what some lack.

The answer to a heartbeat named a lowest acknowledged metadata offset, and a broker that its
controller held for unfenced, from the request's being passed on to the answer's arriving, had not
acknowledged it by then in a heartbeat of its registration; or a higher one had been told before the
request was passed on, in the same term of a controller or an earlier one. Where nothing is told,
nothing is judged.

Where the protocol has it, the answer to a heartbeat names the lowest metadata offset that every
unfenced broker has acknowledged, and brokers show what lies at or below it.

See `visibility.acknowledgements` for the offsets that brokers had acknowledged. A higher offset was
told before if its answer had arrived at the proxy when the request for the lower one was passed on.
A deposed controller may answer late and from what it knew: only what a controller told in the same
term or an earlier one is held against it. The controllers' epochs are not in the frames. So the
later word is taken for that of the last term that its node surely had begun, and the earlier word
for that of the last one that its node can have begun.

Meaning: Brokers show metadata that others do not know yet, or hide what they had shown.
Case: an answer to a heartbeat that tells a lowest acknowledged offset, and a broker or an earlier
answer to hold it against
Source: the draft that adds LowestAcknowledgedOffset to BrokerHeartbeat, "Read-after-write
visibility"
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.beats import TapedHeartbeat, TapedHeartbeats, beats_of, in_turn
from fencepost.checkers.metadata.sessions import TermsOfNodes
from fencepost.checkers.metadata.view import MetadataView, doubtful, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.sources import streamed
from fencepost.checkers.table_check import TableCheck
from fencepost.checkers.visibility.acknowledgements import Acknowledgements, Bound

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.METADATA,
    rests_on=("whole-tape",),
    needs=("metadata_log", "wire"),
)
NAME: Final = ENTRY.name

_NO_TERM: Final = -1


def false_lowest_offsets(tables: Tables, seen: MetadataView) -> Judged:
    """Yield the findings on what brokers were told. Reads `metadata_log` and `wire`."""
    beats = beats_of(streamed(tables, "wire"))
    telling = beats.telling
    if len(telling) and seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    told: dict[str, list[Proof]] = {
        beats.nodes[one]: [] for one in np.unique(beats.source[telling])
    }
    judged = np.zeros(len(beats), dtype=np.bool_)
    acknowledged = Acknowledgements(seen, beats)
    for place in telling.tolist():
        beat = beats.at(place)
        answers = list(_compared(beat, acknowledged))
        judged[place] = bool(answers)
        told[beat.source] += [one for one in answers if one is not None][:1]
    for place, highest in _told_before(beats, telling, seen.terms_of_nodes):
        judged[place] = True
        if beats.lowest[place] < beats.lowest[highest]:
            beat = beats.at(place)
            told[beat.source].append(_back(beat, beats.at(highest)))
    for node in sorted(told):
        mine = judged & (beats.source == beats.nodes.index(node))
        # A frame may be on the tape twice.
        yield node, spelled(NAME, node, told[node], cases=len(np.unique(beats.frame[mine])))


def _compared(beat: TapedHeartbeat, acknowledged: Acknowledgements) -> Iterator[Proof | None]:
    """Judge each broker by rule 1: a proof if it lacks what was told."""
    bounds = acknowledged.bound(beat.target, from_ns=beat.reached_ns, until_ns=beat.answered_ns)
    for one in bounds:
        yield _lacks(beat, one) if one.acknowledged < beat.lowest else None


def _lacks(beat: TapedHeartbeat, one: Bound) -> Proof:
    return Proof.of(
        "{target} told {source} at {answered} that every unfenced broker has "
        "acknowledged metadata offset {lowest} (frame {answer_frame}), and broker "
        "{broker_id} (broker epoch {broker_epoch}), unfenced, had acknowledged "
        + ("no metadata offset" if one.acknowledged < 0 else "no more than {acknowledged}"),
        metadata_offsets={"acknowledged": one.acknowledged, "lowest": beat.lowest},
        values={"broker_epoch": one.broker_epoch},
        frames={"frame": beat.frame, "answer_frame": beat.answer_frame},
        times={"answered": beat.answered_ns},
        sources={"lowest": "answer_frame", "answered": "answer_frame"},
        target=beat.target,
        source=beat.source,
        broker_id=one.broker_id,
    )


class _Highest:
    """The places of the highest that was told by then, by the last term of its teller."""

    def __init__(self, lowest: NDArray[np.int64]) -> None:
        self._lowest = lowest
        self._terms: list[int] = []
        self._places: list[int] = []
        """Of each term the highest of all terms up to it."""

    def add(self, begin_offset: int, place: int) -> None:
        """Note that a node told it that can have begun that term at most."""
        at = bisect_left(self._terms, begin_offset)
        if at == len(self._terms) or self._terms[at] != begin_offset:
            self._terms.insert(at, begin_offset)
            self._places.insert(at, self._places[at - 1] if at else place)
        for later in range(at, len(self._terms)):
            if self._lowest[self._places[later]] >= self._lowest[place]:
                break
            self._places[later] = place

    def up_to(self, begin_offset: int) -> int | None:
        """Return the highest that was told in that term or an earlier one."""
        at = bisect_right(self._terms, begin_offset)
        return self._places[at - 1] if at else None


def _told_before(
    beats: TapedHeartbeats, telling: NDArray[np.int64], terms: TermsOfNodes
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of rule 2: (an answer, the one that had told most before it)."""
    highest = _Highest(beats.lowest)
    for place, answered in in_turn(beats, telling):
        for one in answered:
            begun = terms.perhaps_begun(_teller(beats, one), int(beats.answered_ns[one]))
            highest.add(_NO_TERM if begun is None else begun.begin_offset, one)
        term = terms.surely_begun(_teller(beats, place), int(beats.reached_ns[place]))
        most = None if term is None else highest.up_to(term.begin_offset)
        if most is not None:
            yield place, most


def _teller(beats: TapedHeartbeats, place: int) -> str:
    return beats.nodes[int(beats.target[place])]


def _back(beat: TapedHeartbeat, higher: TapedHeartbeat) -> Proof:
    return Proof.of(
        "{target} told {source} at {answered} that every unfenced broker has "
        "acknowledged metadata offset {high} (frame {answer_frame}), and "
        "{rpc_target}, in the same term or a later one, told {rpc_source} at "
        "{rpc_answered} that it is {low} (frame {rpc_answer_frame})",
        metadata_offsets={"high": higher.lowest, "low": beat.lowest},
        frames={"frame": higher.frame, "answer_frame": higher.answer_frame}
        | {"rpc_frame": beat.frame, "rpc_answer_frame": beat.answer_frame},
        times={"answered": higher.answered_ns, "rpc_answered": beat.answered_ns},
        sources={"high": "answer_frame", "low": "rpc_answer_frame"},
        target=higher.target,
        source=higher.source,
        rpc_target=beat.target,
        rpc_source=beat.source,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=false_lowest_offsets,
        apis=("BrokerHeartbeat",),
    ),
)
