"""C2b unfetched-epoch: a leader proposed a follower under an epoch of no Fetch of its (KIP-903).

AlterPartition version 3 names a broker epoch for each member of the ISR. That of a follower is to
come from its Fetches: they are what the leader judged it in sync by. A leader that takes it from
the metadata instead names the right epoch for the wrong incarnation: the follower's last Fetch may
be from before it lost its disk, and the controller, which compares epochs, has nothing to refuse.
C2 has no means to see that, since the request names the epoch that is registered.

So each proposal is judged by which a follower would join: it is in the ISR asked for, and not in
that of the partition epoch that the request expects (the metadata log). By the time at which the
request arrived at the proxy, a Fetch of that partition by that follower under the epoch named must
have been passed on to that leader. Both times are of one clock, and each errs on the side of no
accusation: the leader had sent its request before it arrived at the proxy, and had received a Fetch
only after it was passed on. The incarnation of the leader, and what its Fetch offsets were worth,
are left out: a Fetch that an earlier incarnation of the leader received counts, too.

Not judged are: a follower named with -1 (Kafka's "not checked"), or in a version below 3; one whose
link to the leader is not on the tape; one of whose Fetches to it could not be decoded before; and a
request that expects a partition epoch which the log does not have. A request that is sent again
word for word is one proposal, and its first sending counts.

Source: KIP-903; KAFKA-14139.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from checkers.anomaly import Proof
from checkers.control_plane.view import View, by_partition, clock, view
from checkers.kernels.facts import Facts, Judged, Tables
from checkers.kernels.follower_fetches import Told, follower_fetches
from checkers.kernels.isr_changes import NO_REQUESTS, Requests, requests_by_partition
from checkers.kernels.partition_states import PartitionHistory
from checkers.kernels.rpcs import Rpc

__all__ = ["NAME", "unfetched_epochs"]

NAME: Final = "unfetched-epoch"
_UNCHECKED: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Join:
    """A follower that a request proposes to let in, under the epoch that it names."""

    request: Rpc
    follower: str
    broker_id: int
    broker_epoch: int


def unfetched_epochs(tables: Tables, facts: Facts) -> Judged:
    """Followers proposed under epochs of no Fetch, by partition. Reads `metadata_log`, `wire`."""
    seen = view(tables, facts)
    requests = requests_by_partition(tables["wire"], seen.partitions)
    fetches = follower_fetches(tables["wire"])

    def judged(history: PartitionHistory) -> Iterator[Proof | None]:
        place = (history.topic_id, history.partition)
        for join in _joins(history, requests.get(place, NO_REQUESTS), seen):
            link = (join.follower, join.request.source)
            if link not in fetches.links:
                continue
            told = fetches.told(link, place)
            if not _is_doubtful(join, told):
                yield _judged(history, join, told)

    return by_partition(NAME, seen, judged)


def _joins(history: PartitionHistory, requests: Requests, seen: View) -> Iterator[_Join]:
    """Each join that was proposed under an epoch, once."""
    places, nodes = history.by_epoch(), seen.facts.nodes()
    known: set[tuple[object, ...]] = set()
    for request in requests:
        place = places.get(request.of("partition_epoch"))
        if place is None:
            continue
        isr = history.versions[place].isr
        for broker_id, epoch in zip(
            request.of("isr") or (), request.of("isr_epochs") or (), strict=False
        ):
            words = (request.source, request.of("leader_epoch"), place, broker_id, epoch)
            if broker_id in isr or epoch == _UNCHECKED or words in known or broker_id not in nodes:
                continue
            known.add(words)
            yield _Join(
                request=request,
                follower=nodes[broker_id],
                broker_id=broker_id,
                broker_epoch=epoch,
            )


def _before(join: _Join, told: tuple[Told, ...]) -> list[Told]:
    """What the leader can have been told when it sent the request."""
    return [one for one in told if one.reached_ns <= join.request.asked_ns]


def _is_doubtful(join: _Join, told: tuple[Told, ...]) -> bool:
    return any(one.broker_epoch is None for one in _before(join, told))


def _judged(history: PartitionHistory, join: _Join, told: tuple[Told, ...]) -> Proof | None:
    before = _before(join, told)
    if any(one.broker_epoch == join.broker_epoch for one in before):
        return None
    first = next((one for one in told if one.broker_epoch == join.broker_epoch), None)
    request = join.request
    frames = (
        *((before[-1].frame,) if before else ()),
        request.frame,
        *((first.frame,) if first else ()),
    )
    epochs = (*((before[-1].broker_epoch,) if before else ()), join.broker_epoch)
    return Proof(
        values=tuple(epoch for epoch in epochs if epoch is not None),
        frames=frames,
        detail=f"{request.source} proposed broker {join.broker_id} for the ISR of {history.key} "
        f"under broker epoch {join.broker_epoch} at {clock(request.asked_ns)} (frame "
        f"{request.frame}); {_known(before)}, and {_first(first, join)}",
    )


def _known(before: list[Told]) -> str:
    if not before:
        return "it had no Fetch of that replica at all"
    last = before[-1]
    return (
        f"the Fetches that it had from that replica named broker epoch {last.broker_epoch} "
        f"(since {clock(last.reached_ns)}, frame {last.frame})"
    )


def _first(first: Told | None, join: _Join) -> str:
    if first is None:
        return f"none under {join.broker_epoch} was ever passed on to it"
    return (
        f"the first one under {join.broker_epoch} was passed on to it at "
        f"{clock(first.reached_ns)} (frame {first.frame})"
    )
