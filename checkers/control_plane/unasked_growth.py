"""Where ZooKeeper has the metadata, replicas in or out of an ISR by no request on the tape.

Controllers write no reasons down there, so a version without a request is not unasked as such. Two
kinds are, whatever the controller thought:

- An AlterPartition was granted the partition epoch of a version, with another ISR. The controller
  writes what was asked over the version that was expected, or answers with what is so already.
- A replica is in the ISR under a leadership that goes on, and was not in it one partition epoch
  before. A controller adds nobody but the one that it elects; the leader asks. So a request that
  names the replica has to be on the tape: an AlterPartition that expects the partition epoch
  before, whatever its answer was (a write to ZooKeeper that is repeated after the connection was
  lost is refused, though the first one was done); or an IsrChange that was under way at that time.

The second one is judged only of a leader that asks in this registration, by some request on the
tape: brokers below inter.broker.protocol.version 2.7-IV2, and those of the draft below its own
level, write ISRs themselves. Nor is it judged of a leader that is the controller, or where it is
not known who was.

Source: KIP-497; `KafkaController.processAlterPartition` and `KafkaZkClient.updateLeaderAndIsr` of
3.9.2; Draft: controller heartbeats, broker incarnation ids.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from fencepost.checkers.metadata.isr_changes import (
    ISR_CHANGE,
    NO_REQUESTS,
    IsrRequests,
    proposals,
    requests_by_partition,
)
from fencepost.checkers.metadata.partition_states import (
    NO_LEADER,
    PartitionHistory,
    PartitionVersion,
)
from fencepost.checkers.metadata.rpcs import Rpc, rpcs
from fencepost.checkers.metadata.sessions import term_at
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.sources import Source

_ALTER: Final = "AlterPartition"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZookeeperRequests:
    """The requests to change ISRs of a run, and the log of record that they are held against."""

    seen: MetadataView
    altering: Mapping[tuple[str, int], IsrRequests]
    changing: Mapping[tuple[str, int], IsrRequests]
    asking: frozenset[tuple[str, int]]
    """(node, broker epoch) of the registrations under which a broker asked for any ISR."""

    def granted(self, history: PartitionHistory, version: PartitionVersion) -> Sequence[Rpc]:
        """Return the AlterPartitions that were granted this version."""
        made_by = proposals(version, self._altering(history)).sure
        return [one for one in made_by if one.ok]

    def unasked(
        self, history: PartitionHistory, before: PartitionVersion, version: PartitionVersion
    ) -> frozenset[int] | None:
        """Return the replicas of a version that no request can have let in.

        None if none was let in, or it may have been let in without a request on the tape.
        """
        joined = frozenset(version.isr) - frozenset(before.isr)
        if not joined or not self._had_to_ask(before, version):
            return None
        asked = self._possible(history, version)
        return joined.difference(*(one.of("isr") or () for one in asked))

    def unasked_losses(
        self, history: PartitionHistory, before: PartitionVersion, version: PartitionVersion
    ) -> frozenset[int]:
        """Return the replicas that are out of the ISR of a version, and no request left them out.

        None of them where a request need not be on the tape.
        """
        out = frozenset(before.isr) - frozenset(version.isr)
        if not out or not self._had_to_ask(before, version):
            return frozenset()
        for one in self._possible(history, version):
            out &= frozenset(one.of("isr") or ())
        return out

    def _had_to_ask(self, before: PartitionVersion, version: PartitionVersion) -> bool:
        """Return whether the leader of both surely could change the ISR by a request alone."""
        leader, seen = before.leader, self.seen
        reign = (before.leader, before.leader_epoch) == (version.leader, version.leader_epoch)
        following = version.partition_epoch == before.partition_epoch + 1
        term = term_at(seen.terms, version.metadata_offset)
        registered = seen.broker_before(leader, version.metadata_offset)
        if leader == NO_LEADER or not (reign and following) or term is None or registered is None:
            return False
        node, controller = seen.facts.nodes().get(leader), seen.facts.node_ids.get(term.node)
        is_remote = controller is not None and controller != leader
        return is_remote and node is not None and (node, registered.broker_epoch) in self.asking

    def _possible(self, history: PartitionHistory, version: PartitionVersion) -> Iterator[Rpc]:
        expected = version.partition_epoch - 1
        for one in self._altering(history).expecting.get(expected, ()):
            if one.reached_ns is not None:
                yield one
        facts = self.seen.facts
        earliest_ns = facts.earliest_ns(version.timestamp_ms)
        latest_ns = facts.latest_ns(version.timestamp_ms)
        for one in self.changing.get((history.topic_id, history.partition), NO_REQUESTS):
            is_there = one.reached_ns is not None and one.reached_ns <= latest_ns
            # No client sees the answer to a copy that the proxy made.
            is_open = one.answered_ns is None or one.of("action") == "duplicated"
            if is_there and (is_open or (one.answered_ns or 0) >= earliest_ns):
                yield one

    def _altering(self, history: PartitionHistory) -> IsrRequests:
        return self.altering.get((history.topic_id, history.partition), NO_REQUESTS)


def zookeeper_requests(wire: pa.Table | Source, seen: MetadataView) -> ZookeeperRequests:
    """Return what brokers asked for on a tape."""
    apis = (_ALTER, ISR_CHANGE)
    altering, changing = (requests_by_partition(wire, seen.partitions, api=api) for api in apis)
    asking = frozenset(
        (one.source, one.of("broker_epoch"))
        for api in apis
        for one in rpcs(wire, api)
        if one.of("broker_epoch") is not None
    )
    return ZookeeperRequests(seen=seen, altering=altering, changing=changing, asking=asking)
