"""Slabs of one key put together: the faults that no single slab can see.

Between two slabs, a bound of the one contradicts a bound of the other exactly if the latest lower
bound of all earlier versions is after the earliest upper bound of the later ones. Slabs are asked
again about what refusals carry over the border (`entries`). The makers of the versions that no ok
operation made are found last, in the light of all of them: memory is that of these versions (runs
of which count as one) and of the crashed writes of the key, not of its operations.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fencepost.checkers.linearizability.claims import ALWAYS, NEVER
from fencepost.checkers.linearizability.faults import (
    NO_ENTRY,
    ClaimKind,
    EntryBound,
    Fault,
    Violation,
    Witness,
)
from fencepost.checkers.linearizability.schedule import Unmade, unexplained
from fencepost.checkers.linearizability.slab import FAULTS_MAX, Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The faults of a key."""

    faults: tuple[Fault, ...]
    """Not all, if there are many."""
    fault_count: int
    case_count: int
    """Answers that were compared: reads, refusals, and changes that name their version."""
    doubt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlabRun:
    """The answer of a slab."""

    summary: Summary
    entry: EntryBound = NO_ENTRY
    """The entry under which the slab was summed up."""
    steady_from: int
    """The moment from which on an entry changes nothing, by the slab's first run."""
    again_count: int = 0
    """The number of times it was asked again."""

    @staticmethod
    def first(summary: Summary) -> "SlabRun":
        """Return the run of a slab's first answer."""
        return SlabRun(summary=summary, steady_from=max(summary.steady_from, summary.first_lower))

    def again(self, summary: Summary, entry: EntryBound) -> "SlabRun":
        """Return the run of a later answer."""
        return replace(self, summary=summary, entry=entry, again_count=self.again_count + 1)


def entries(runs: Sequence[SlabRun]) -> Mapping[int, EntryBound]:
    """Return the slabs, by place, to ask again, and with which entry; empty when it is over.

    runs: of all slabs of a key, in the order of their versions. A slab behind one that has to be
    asked again is asked along with it, but only once: so each slab is asked three times at most,
    however far the refusals reach.
    """
    asked: dict[int, EntryBound] = {}
    for place in range(1, len(runs)):
        entry, run = runs[place - 1].summary.exit, runs[place]
        # An entry that began as nothing, or changed nothing, is as good as none.
        same = entry.latest == run.entry.latest
        if same or min(entry.latest, run.entry.latest) >= run.steady_from:
            continue
        if not asked or run.again_count == 0:
            asked[place] = entry
    return asked


def concluded(summaries: Sequence[Summary]) -> Conclusion:
    """Return the faults of the key, by version, from the summaries of all its slabs."""
    across = list(_across(summaries))
    unwritten, unwritten_count = _versions_without_writer(summaries)
    faults = [fault for summary in summaries for fault in summary.faults]
    return Conclusion(
        faults=(*across, *faults, *unwritten),
        case_count=sum(one.case_count for one in summaries),
        fault_count=len(across) + unwritten_count + sum(one.fault_count for one in summaries),
        doubt="; ".join(dict.fromkeys(one.doubt for one in summaries if one.doubt)),
    )


def _across(summaries: Sequence[Summary]) -> Iterator[Fault]:
    """Find contradictions between slabs, each lower bound once: with the first later slab."""
    lower = told = ALWAYS
    for summary in summaries:
        if lower > summary.upper and lower != told:
            told = lower
            yield Fault(
                rule=Violation.TIMES,
                witnesses=(
                    Witness(kind=ClaimKind.NOT_BEFORE, version=summary.first, number=lower),
                    Witness(kind=ClaimKind.BY, version=summary.first, number=summary.upper),
                ),
            )
        lower = max(lower, summary.lower)


def _versions_without_writer(summaries: Sequence[Summary]) -> tuple[list[Fault], int]:
    """Return the faults of versions that existed but that no operation can have made."""
    unmade = _unmade(summaries)
    unmade = unmade.take((unmade.latest < NEVER) & (unmade.swap > unmade.latest))
    if not len(unmade.first):
        return [], 0
    calls, values = (np.concatenate([one.writes[side] for one in summaries]) for side in (0, 1))
    wrong, count = unexplained(unmade, call=calls, value=values)
    left = unmade.take(np.flatnonzero(wrong)[:FAULTS_MAX])
    faults = [
        Fault(
            rule=Violation.NOBODY,
            witnesses=(
                *((Witness(kind=ClaimKind.SAW, version=version),) if told else ()),
                Witness(kind=ClaimKind.BY, version=version, number=latest),
                Witness(kind=ClaimKind.REFUSED, version=version, number=latest),
            ),
            version_count=run,
        )
        for version, run, latest, told in zip(
            left.first.tolist(),
            left.count.tolist(),
            left.latest.tolist(),
            left.told.tolist(),
            strict=True,
        )
    ]
    return faults, count


def _unmade(summaries: Sequence[Summary]) -> Unmade:
    """Return the unmade versions of all slabs, given all later slabs and the entries."""
    later, parts = NEVER, []
    for place in range(len(summaries) - 1, -1, -1):
        summary = summaries[place]
        mine = summary.unmade
        latest = np.minimum(mine.latest, later)
        if place > 0:
            lowered = summaries[place - 1].exit.latest
            latest = np.where(mine.first == summary.first, np.minimum(latest, lowered), latest)
        parts.append(replace(mine, latest=latest))
        later = min(later, summary.upper)
    parts.reverse()
    return Unmade(
        **{
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("first", "count", "latest", "value", "told", "swap")
        }
    )
