"""The replicas that must have held an acknowledged record, by the metadata log.

A leader acknowledges a record under acks=all once its high watermark is above it, and the high
watermark rises only when every member of the ISR has the record; the leader's own view of the ISR
is never smaller than the committed one while that stands (KIP-497, the maximal ISR). So a broker
that was in the ISR in every version that may have been in force between the call and the return of
a send had the record when it was acknowledged.

Which versions those are is known up to what the clocks may differ, so the span is widened at both
ends. Sends whose span has a change of the leader epoch are left out: an old leader may have
acknowledged by its own view.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.facts import Facts
from fencepost.checkers.metadata.partition_states import PartitionVersion
from fencepost.checkers.replicas.sends import AcknowledgedSends


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """Sends that were acknowledged under the same versions of their partition."""

    versions: tuple[PartitionVersion, ...]
    """The versions that may have been in force, in order; all of one leader epoch."""
    place: int
    """The place of the first of them in the history of the partition."""
    holders: frozenset[int]
    """Brokers that were in the ISR of each of them: they had these records."""
    of_key: AcknowledgedSends
    """All of its key."""
    places: NDArray[np.int32]
    """Those of them that are meant, ascending."""

    @property
    def sends(self) -> AcknowledgedSends:
        """The sends; made when they are asked for, since a night has millions."""
        return self.of_key.take(self.places)


def commitments(
    sends: AcknowledgedSends, versions: Sequence[PartitionVersion], facts: Facts
) -> Iterator[Commitment]:
    """Yield the sends, by the versions that may have been in force from call to return.

    Ascending by the first version of each.
    """
    if not len(sends) or not versions:
        return
    width = len(versions) + 1
    first, last = in_force(versions, facts, from_ns=sends.call_ns, until_ns=sends.return_ns)
    # One number for both: a bucket of a night has millions of sends.
    span = (first + 1) * width + last + 1
    del first, last
    # The sends of a span together, and in their order: a night has thousands of spans.
    order = np.argsort(span, kind="stable").astype(np.int32)
    span = span[order]
    bounds = [0, *(np.flatnonzero(np.diff(span)) + 1).tolist(), len(span)]
    for begin, until in pairwise(bounds):
        start, end = int(span[begin]) // width - 1, int(span[begin]) % width - 1
        mine = tuple(versions[start : end + 1]) if start >= 0 else ()
        if mine and len({one.leader_epoch for one in mine}) == 1:
            yield Commitment(
                versions=mine,
                place=start,
                holders=frozenset.intersection(*(frozenset(one.isr) for one in mine)),
                of_key=sends,
                places=order[begin:until],
            )


def in_force(
    versions: Sequence[PartitionVersion],
    facts: Facts,
    *,
    from_ns: NDArray[np.int64],
    until_ns: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the first and the last version that may have been in force in each span.

    -1 where a span began before any version surely was.
    """
    surely_ns = np.array([facts.latest_ns(one.timestamp_ms) for one in versions])
    perhaps_ns = np.array([facts.earliest_ns(one.timestamp_ms) for one in versions])
    # Clocks of several controllers may differ: a version is in force after all earlier ones.
    surely_ns = np.maximum.accumulate(surely_ns)
    perhaps_ns = np.minimum.accumulate(perhaps_ns[::-1])[::-1]
    first = np.searchsorted(surely_ns, from_ns, side="right") - 1
    last = np.searchsorted(perhaps_ns, until_ns, side="right") - 1
    return first, last
