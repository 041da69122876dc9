"""A cluster of Kafka's kind as processes, whose own controllers keep its metadata."""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.clusters.hosts.place import KEPT
from fencepost.clusters.kafka.metadata_watch import MetadataWatch
from fencepost.clusters.kafka.observation import ask_metadata, best_of, quorum_leader, view_of
from fencepost.clusters.kafka.processes import BrokerProcesses
from fencepost.clusters.kafka.readiness import listed
from fencepost.clusters.kafka_port import ClusterView, KafkaSpec, Role
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.metadata_records import Definitions
from fencepost.history.failure import HarnessError

if TYPE_CHECKING:
    from fencepost.clusters.witness.witness import WitnessReport


class QuorumProcesses(BrokerProcesses):
    """`clusters.kafka_port.BrokerCluster` with all its abilities, but for what its nodes run."""

    _spec: KafkaSpec

    @abstractmethod
    def _definitions(self) -> Definitions:
        """The records of the metadata logs that its nodes write."""

    @abstractmethod
    def _await_quorum(self) -> None:
        """Return when brokers may be started; the controllers were."""

    def leader_now(self) -> NodeName | None:
        """The active controller as it says itself, or None if none does."""
        leader = quorum_leader(self._running(Role.CONTROLLER))
        return None if leader is None else self.node_of(leader)

    def view(self) -> ClusterView:
        """The metadata as the most current of the brokers shows it, within 2 s.

        Raises HarnessError if no broker answers.
        """
        answers = ask_metadata(self._running(Role.BROKER))
        if not answers:
            states = {name: self.state(name) for name in self._nodes}
            raise HarnessError(f"no broker answered; nodes: {listed(states)}")
        by_id = {self.broker_id(name): answer for name, answer in answers.items()}
        return view_of(best_of(by_id), answers=by_id, time_ns=self._clock.now_ns())

    def watch(self, raw: Path, *, topics: Sequence[str]) -> MetadataWatch:
        """Record in `raw`, while entered, what brokers show of topics, and who leads the quorum."""
        return MetadataWatch(
            raw,
            clock=self._clock,
            topics=topics,
            brokers={name: self._address(name) for name in self._names(Role.BROKER)},
            controllers=lambda: self._running(Role.CONTROLLER),
            node_of=self.node_of,
            with_settings=True,
        )

    def testify(self, raw: Path, *, topics: Sequence[str]) -> "WitnessReport":
        """Record in `raw` what the disks hold: metadata logs, replicas of topics, nodes' logs."""
        # With pyarrow: what a cluster can do is asked of its class, and refused before.
        from fencepost.clusters.witness.witness import write_witness  # noqa: PLC0415

        self._write_node_tables(raw)
        # A spare node that was never started has nothing to tell.
        nodes = [name for name in self._nodes if self.pid_of(name) is not None]
        return write_witness(
            {name: self.data_of(name) for name in nodes},
            kept={name: self._nodes[name].place.fetch(KEPT) for name in nodes},
            topics=topics,
            definitions=self._definitions(),
            raw=raw,
        )

    def _await_role(self, role: str, members: Sequence[NodeName]) -> None:
        if role == Role.CONTROLLER:
            self._await_quorum()
        else:
            super()._await_role(role, members)
