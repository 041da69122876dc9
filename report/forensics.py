"""The fate of acknowledged records that readers miss, told so that one page is enough to follow.

The checkers' forensics (`forensics.json`) say of each stretch of missing records where they went
and what is known of the way there. Here each becomes a story: its sentence, the steps from the
acknowledgement to the loss in the order of time, each with its evidence, and what lay on the disks
in the end. Nothing is concluded here that the forensics do not say.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from fencepost.checkers.losses.forensics import (
    Acknowledgement,
    EarlyRead,
    FaultAlive,
    FinalReplica,
    Forensics,
    Join,
    Loss,
    LossyElection,
    Truncation,
    ValueFate,
    read_forensics,
)
from fencepost.report.notation import counted, length

MEANINGS: Final = {
    ValueFate.LOST: "on no replica's disk",
    ValueFate.UNREACHABLE: "on a replica's disk, outside the log of the leader",
    ValueFate.UNREAD: "in the leader's log, and given to no reader",
    ValueFate.UNCERTAIN: "on no disk that could be read whole; some could not",
}
_STORIES_MAX: Final = 6
_MOMENTS_MAX: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One step of the way."""

    time_ns: int | None
    """The time; None: it shows at the end, and its time is unknown."""
    what: str
    decisive: bool = False
    """True if the loss would not have happened without it."""
    frames: tuple[int, ...] = ()
    metadata_offsets: tuple[int, ...] = ()
    fault: int | None = None
    """The index of a fault."""
    evidence: str = ""
    """Other evidence, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossStory:
    """One loss."""

    loss: Loss
    meaning: str
    moments: tuple[Moment, ...]
    left_out: int
    """The number of steps that are not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stories:
    """The largest losses, and how many there are."""

    stories: tuple[LossStory, ...] = ()
    left_out: int = 0
    troubles: tuple[str, ...] = ()
    """The reasons why some key could not be examined."""

    @property
    def frames(self) -> frozenset[int]:
        """The frames that the stories name."""
        moments = chain.from_iterable(story.moments for story in self.stories)
        return frozenset(frame for moment in moments for frame in moment.frames)


def stories_at(path: Path) -> Stories:
    """Return the stories of a run's forensics; none if it has none.

    Raises HarnessError if the file is torn or of another format.
    """
    forensics = read_forensics(path)
    return Stories() if forensics is None else _stories(forensics)


def _stories(forensics: Forensics) -> Stories:
    largest = sorted(forensics.losses, key=lambda loss: -loss.count)
    return Stories(
        stories=tuple(map(_story, largest[:_STORIES_MAX])),
        left_out=len(largest[_STORIES_MAX:]),
        troubles=forensics.troubles,
    )


def _story(loss: Loss) -> LossStory:
    moments = sorted(_moments(loss), key=_order)
    shown = _shortened(moments)
    return LossStory(
        loss=loss,
        meaning=MEANINGS[loss.fate],
        moments=tuple(shown),
        left_out=len(moments) - len(shown),
    )


def _order(moment: Moment) -> tuple[bool, int, int]:
    """Return the sort key: by time; records of one millisecond by their offsets."""
    offset = max(moment.metadata_offsets, default=0)
    return moment.time_ns is None, moment.time_ns or 0, offset


def _shortened(moments: Sequence[Moment]) -> list[Moment]:
    """Return the decisive moments, and as many of the latest others as there is room for."""
    decisive = sum(moment.decisive for moment in moments)
    room = max(0, _MOMENTS_MAX - decisive)
    others = [place for place, moment in enumerate(moments) if not moment.decisive]
    kept = set(others[-room:] if room else ())
    return [m for place, m in enumerate(moments) if m.decisive or place in kept]


def _moments(loss: Loss) -> Iterator[Moment]:
    for acknowledgement in loss.acknowledgements:
        yield _acknowledged(acknowledgement)
    for early in loss.early_reads:
        yield _read(early)
    if loss.join is not None:
        yield from _joined(loss.join)
    if loss.election is not None:
        yield _elected(loss.election)
    told_faults = {(one.fault, one.node) for one in loss.truncations}
    for fault in loss.faults:
        if not told_faults.intersection((fault.fault, target) for target in fault.targets):
            yield from _broken(fault)
    for truncation in loss.truncations:
        yield _truncated(truncation, loss.faults)
    told = set(_told(loss))
    for note in loss.metadata:
        if note.metadata_offset not in told:
            offsets = (note.metadata_offset,)
            yield Moment(time_ns=note.time_ns, what=note.text, metadata_offsets=offsets)


def _told(loss: Loss) -> Iterator[int | None]:
    """Yield the offsets of metadata records that a step of their own tells of."""
    if loss.join is not None:
        yield from (loss.join.metadata_offset, loss.join.registration_offset)
    if loss.election is not None:
        yield loss.election.metadata_offset


def _acknowledged(one: Acknowledgement) -> Moment:
    took = one.last_ns - one.first_ns
    over = f", over {length(took)}" if took else ""
    return Moment(
        time_ns=one.first_ns,
        what=f"Broker {one.leader}, leader in leader epoch {one.leader_epoch}, acknowledges "
        f"{counted(one.count, 'record')} at {_range(one.first_offset, one.last_offset)}{over}; "
        f"the ISR is {list(one.isr)}.",
        decisive=True,
        metadata_offsets=(one.metadata_offset,),
    )


def _read(early: EarlyRead) -> Moment:
    return Moment(
        time_ns=early.first_ns,
        what=f"Consumers are given {counted(early.count, 'record')} of it while the ISR is "
        f"{list(early.isr)}; min.insync.replicas is {early.min_isr}.",
        decisive=True,
        metadata_offsets=(early.metadata_offset,),
    )


def _joined(join: Join) -> Iterator[Moment]:
    frames = () if join.frame is None else (join.frame,)
    broker = f"broker {join.broker_id}"
    if join.sent_ns is not None:
        yield Moment(
            time_ns=join.sent_ns,
            what=f"The leader asks for {broker} to be in the ISR{_word_of(join)}.",
            decisive=True,
            frames=frames,
        )
    if join.registered_ns is not None and join.registration_offset is not None:
        yield Moment(
            time_ns=join.registered_ns,
            what=f"Broker {join.broker_id} registers, with broker epoch {join.registered_epoch}.",
            decisive=join.stale,
            metadata_offsets=(join.registration_offset,),
        )
    held = ""
    if join.forwarded_ns is not None and join.sent_ns is not None:
        held = f", {length(join.forwarded_ns - join.sent_ns)} after it was asked for"
    stale = ", though the leader had judged its earlier incarnation" if join.stale else ""
    yield Moment(
        time_ns=join.time_ns,
        what=f"Broker {join.broker_id} joins the ISR (partition epoch {join.partition_epoch})"
        f"{held}{stale}.",
        decisive=True,
        frames=frames,
        metadata_offsets=(join.metadata_offset,),
    )


def _word_of(join: Join) -> str:
    return "" if join.judged_epoch is None else f", on the word of broker epoch {join.judged_epoch}"


def _elected(election: LossyElection) -> Moment:
    how = "uncleanly " if election.unclean else ""
    return Moment(
        time_ns=election.time_ns,
        what=f"Broker {election.leader} is {how}elected, leader epoch {election.leader_epoch}; its "
        f"log ends at offset {election.log_end_offset}.",
        decisive=True,
        metadata_offsets=(election.metadata_offset,),
    )


def _broken(fault: FaultAlive) -> Iterator[Moment]:
    name = f"{fault.fault} {', '.join(fault.targets)}"
    yield Moment(time_ns=fault.begin_ns, what=f"Fault: {name}.", fault=fault.index)
    if fault.end_ns is not None:
        yield Moment(time_ns=fault.end_ns, what=f"Healed: {name}.", fault=fault.index)


def _truncated(truncation: Truncation, faults: Sequence[FaultAlive]) -> Moment:
    if truncation.fault is None:
        return Moment(
            time_ns=None,
            what=f"{truncation.node} cut its log at offset {truncation.to_offset}.",
            decisive=True,
            evidence="its log, as it lay in the end",
        )
    by = next(
        (
            fault
            for fault in faults
            if fault.fault == truncation.fault and truncation.node in fault.targets
        ),
        None,
    )
    return Moment(
        time_ns=by.begin_ns if by else None,
        what=f"{truncation.node} loses its disk: {truncation.fault}.",
        decisive=True,
        fault=by.index if by else None,
    )


def _range(first: int, last: int) -> str:
    return f"offset {first}" if first == last else f"offsets {first} to {last}"


def replica_epochs(replica: FinalReplica) -> str:
    """Return `0 from 0, 3 from 1512`: its leader epochs and where each starts."""
    return ", ".join(f"{epoch} from {start}" for epoch, start in replica.leader_epochs)
