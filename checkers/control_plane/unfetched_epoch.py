"""C2b unfetched-epoch: A replica was proposed under a broker epoch under which it had not fetched.

An AlterPartition asks for an ISR with a follower that the ISR of the partition epoch it expects
does not have, and names a broker epoch for it. When the request had arrived at the proxy, a Fetch
of that partition by that follower under that epoch had been passed on to the leader. Not judged
where the follower's link to the leader is not on the tape, or a Fetch on it could not be decoded.

AlterPartition version 3 names a broker epoch for each member of the ISR. That of a follower is to
come from its Fetches: they are what the leader judged it in sync by. A leader that takes it from
the metadata instead names the right epoch for the wrong incarnation: the follower's last Fetch may
be from before it lost its disk, and the controller, which compares epochs, has nothing to refuse.
C2 has no means to see that, since the request names the epoch that is registered.

Both times are of one clock, and each errs on the side of no accusation: the leader had sent its
request before it arrived at the proxy, and had received a Fetch only after it was passed on. The
incarnation of the leader, and what its Fetch offsets were worth, are left out: a Fetch that an
earlier incarnation of the leader received counts, too.

Not judged are: a follower named with -1 (Kafka's "not checked"), or in a version below 3; one whose
link to the leader is not on the tape; one of whose Fetches to it could not be decoded before; and a
request that expects a partition epoch which the log does not have. A request that is sent again
word for word is one proposal, and its first sending counts.

Meaning: The leader judges a follower by the Fetches of one incarnation and proposes the next one,
whose disk may be empty; the controller compares the epochs and lets it in.
Case: a follower that an AlterPartition proposes to let in under a broker epoch
Source: KIP-903; KAFKA-14139
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.follower_fetches import (
    FollowerFetches,
    PassedFetch,
    follower_fetches,
)
from fencepost.checkers.metadata.isr_changes import NO_REQUESTS, IsrRequests, requests_by_partition
from fencepost.checkers.metadata.partition_states import PartitionHistory
from fencepost.checkers.metadata.rpcs import Rpc
from fencepost.checkers.metadata.view import MetadataView, by_partition
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.REQUEST,
    culprit=("AlterPartition:leader→controller",),
    rests_on=("whole-tape",),
    needs=("metadata_log", "wire"),
)
NAME: Final = ENTRY.name
_UNCHECKED: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedJoin:
    """A follower that a request proposes to let in, and what its Fetches had told by then."""

    request: Rpc
    broker_id: int
    broker_epoch: int
    """The broker epoch that the request names."""
    last: PassedFetch | None
    """The last of its Fetches of which the leader can have known when it sent the request."""
    first: PassedFetch | None
    """The first one under the epoch named, if there ever was one."""

    @property
    def is_fetched(self) -> bool:
        """Return whether it had fetched under the epoch that the request names."""
        return self.first is not None and self.first.reached_ns <= self.request.asked_ns

    @property
    def fetched_epoch(self) -> int | None:
        """The epoch under which it had fetched last; None if it had not fetched at all."""
        return None if self.last is None else self.last.broker_epoch


def unfetched_epochs(tables: Tables, seen: MetadataView) -> Judged:
    """Find followers proposed under epochs of no Fetch. Reads `metadata_log`, `wire`."""
    requests = requests_by_partition(streamed(tables, "wire"), seen.partitions)
    fetches = follower_fetches(streamed(tables, "wire"))

    def judged(history: PartitionHistory) -> Iterator[Proof | None]:
        mine = requests.get((history.topic_id, history.partition), NO_REQUESTS)
        for join in proposed_joins(history, mine, fetches, seen):
            yield None if join.is_fetched else _proof(history, join)

    return by_partition(NAME, seen, judged)


def proposed_joins(
    history: PartitionHistory, requests: IsrRequests, fetches: FollowerFetches, seen: MetadataView
) -> Iterator[ProposedJoin]:
    """Yield each join of this partition that can be judged, in the order of the requests."""
    nodes = seen.facts.nodes()
    for request, broker_id, broker_epoch in _named(history, requests):
        link = (nodes.get(broker_id, ""), request.source)
        told = fetches.told(link, (history.topic_id, history.partition))
        unread = told.first_under(None)
        if link not in fetches.links or (unread and unread.reached_ns <= request.asked_ns):
            continue
        yield ProposedJoin(
            request=request,
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            last=told.last_by(request.asked_ns),
            first=told.first_under(broker_epoch),
        )


def _named(history: PartitionHistory, requests: IsrRequests) -> Iterator[tuple[Rpc, int, int]]:
    """Yield each follower that would join and the epoch named for it; each proposal once."""
    places = history.by_epoch()
    known: set[tuple[object, ...]] = set()
    for request in requests:
        place = places.get(request.of("partition_epoch"))
        if place is None:
            continue
        isr = history.versions[place].isr
        members, epochs = request.of("isr") or (), request.of("isr_epochs") or ()
        for broker_id, epoch in zip(members, epochs, strict=False):
            words = (request.source, request.of("leader_epoch"), place, broker_id, epoch)
            if broker_id not in isr and epoch != _UNCHECKED and words not in known:
                known.add(words)
                yield request, broker_id, epoch


def _proof(history: PartitionHistory, join: ProposedJoin) -> Proof:
    request, first, last = join.request, join.first, join.last
    known = "it had no Fetch of that replica at all"
    if last is not None:
        known = (
            "the Fetches that it had from that replica named broker epoch {fetched_epoch} "
            "(since {fetched}, frame {fetch_frame})"
        )
    then = "none under {broker_epoch} was ever passed on to it"
    if first is not None:
        then = (
            "the first one under {broker_epoch} was passed on to it at {first} "
            "(frame {first_frame})"
        )
    return Proof.of(
        "{source} proposed broker {broker_id} for the ISR of {key} under broker "
        f"epoch {{broker_epoch}} at {{asked}} (frame {{frame}}); {known}, and {then}",
        values={"fetched_epoch": join.fetched_epoch, "broker_epoch": join.broker_epoch},
        frames={
            "fetch_frame": last.frame if last else None,
            "frame": request.frame,
            "first_frame": first.frame if first else None,
        },
        times={
            "asked": request.asked_ns,
            "fetched": last.reached_ns if last else None,
            "first": first.reached_ns if first else None,
        },
        sources=dict.fromkeys(("source", "broker_id", "broker_epoch", "asked"), "frame")
        | dict.fromkeys(("fetched_epoch", "fetched"), "fetch_frame")
        | {"first": "first_frame"},
        source=request.source,
        broker_id=join.broker_id,
        key=history.key,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=unfetched_epochs,
        split=Split.PARTITIONS,
    ),
)
