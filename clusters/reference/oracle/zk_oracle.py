"""The oracle over a cluster of the ZooKeeper generation: notes, messages, disks in, findings out.

A driver calls it as it calls `oracle.Oracle`. Records are judged by the same ghost (`kept`); what
was decided, it reads from what ZooKeeper's servers apply.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.clusters.node_port import notes
from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.messages import client, data
from fencepost.clusters.reference.oracle.finding import Finding, Nodes
from fencepost.clusters.reference.oracle.metadata_oracle import Problem
from fencepost.clusters.reference.oracle.record_oracle import RecordOracle
from fencepost.clusters.reference.oracle.zk_heartbeat_oracle import ZkHeartbeatOracle
from fencepost.clusters.reference.oracle.znodes import ZnodeDecisions
from fencepost.clusters.reference.zk import messages as zk

_HEARTBEAT: Final = zk.MetadataHeartbeatRequest.kind
_HEARTBEAT_ANSWER: Final = zk.MetadataHeartbeatResponse.kind
_CHANGE: Final = zk.IsrChangeRequest.kind
_CHANGE_ANSWER: Final = zk.IsrChangeResponse.kind
_TOLD: Final = frozenset(
    {
        zk.LeaderAndIsrRequest.kind,
        zk.StopReplicaRequest.kind,
        zk.UpdateMetadataRequest.kind,
    }
)
_SHOWN: Final = zk.UpdateMetadataResponse.kind
_TOLD_ANSWERS: Final = frozenset(
    {zk.LeaderAndIsrResponse.kind, zk.StopReplicaResponse.kind, _SHOWN}
)
_SERVED: Final = client.ANSWERS | {data.ListOffsetsResponse.kind}
"""Responses of brokers to what is answered at once: what was under way is completed (Z08)."""

ZK_SENT: Final = (
    frozenset({_HEARTBEAT, _HEARTBEAT_ANSWER, _CHANGE, _CHANGE_ANSWER}) | _TOLD_ANSWERS | _SERVED
)
ZK_DELIVERED: Final = frozenset({_HEARTBEAT, _HEARTBEAT_ANSWER, _CHANGE}) | _TOLD
_FINDINGS_MAX: Final = 64


@dataclass(slots=True)
class ZkOracle:
    """Over one run. `broker_epoch` tells what a running broker takes for its own."""

    nodes: Nodes
    broker_epoch: Callable[[int], int]
    speaks: Callable[[int], bool]
    """True for a broker whose inter-broker protocol has heartbeats."""
    timeouts_ns: Callable[[int], tuple[int, int]]
    """The controller-side and the broker-side time-out of a broker that runs."""
    controller_side_ns: int
    broker_side_ns: int
    refusal: int
    """INVALID_INCARNATION_ID's code."""
    min_isr: int = 1
    clients_from: int = 1 << 20
    findings: list[Finding] = field(default_factory=list)
    decided: ZnodeDecisions = field(default_factory=ZnodeDecisions)
    records: RecordOracle = field(init=False)
    heartbeats: ZkHeartbeatOracle = field(init=False)
    _asked: dict[tuple[int, int], Any] = field(default_factory=dict)
    """The IsrChanges that were sent, by (broker, correlation); each process counts anew."""
    _changes: dict[tuple[int, int, int], tuple[Any, int, int]] = field(default_factory=dict)
    """Those that arrived, by (controller, source, correlation), with the highest incarnation
    id in heartbeats of the sender until then, and when they arrived."""
    _told: dict[tuple[int, int, int], tuple[Any, int]] = field(default_factory=dict)
    """(request, broker epoch of who got it) by (broker, source, correlation)."""
    _led: dict[PartitionKey, int] = field(default_factory=dict)
    """The leader that was decided last."""

    def __post_init__(self) -> None:
        """Give the ghosts what they share."""
        self.records = RecordOracle(self.decided, self.nodes, self.min_isr)
        self.heartbeats = ZkHeartbeatOracle(
            self.decided, self.controller_side_ns, self.broker_side_ns, self.refusal
        )

    def started(self, node: int) -> None:
        """A node's process begins."""
        self.heartbeats.started(node)

    def disk_lost(self, node: int, keys: tuple[PartitionKey, ...] | None = None) -> None:
        """A node's disk lost something, of these partitions or of all."""
        self.records.disk_lost(node, keys)
        if keys is None:
            self.decided.disk_lost(f"broker-{node}")

    def finish(self, now: int) -> None:
        """Everything was healed, and the cluster is quiet."""
        self._add(now, -1, self.records.finish())

    def note(self, now: int, node: int, note: tuple[Any, ...]) -> None:
        """A node, a server or a client says that something became true: (NOTE, subject, …)."""
        self.heartbeats.stepped(node, now)
        taken = _NOTED.get(note[1])
        if taken is not None:
            self._add(now, node, taken(self, now, node, note))

    def sent(self, now: int, source: int, target: int, kind: int, message: Any) -> None:
        """A message of a kind in ZK_SENT leaves a node."""
        self.heartbeats.stepped(source, now)
        if kind in _SERVED:
            if target >= self.clients_from:
                self._add(now, source, self.heartbeats.served(source, now))
        elif kind == _HEARTBEAT:
            if not self.speaks(source):
                self._add(now, source, [("ungated-request", f"broker {source} sent a heartbeat")])
            self._add(now, source, self._ill_timed(source))
            self.heartbeats.sent(source, message, now)
        elif kind == _HEARTBEAT_ANSWER:
            self._add(now, source, self.heartbeats.answered(source, target, message))
        elif kind == _CHANGE:
            self._asked[source, message.correlation] = message
            if not self.speaks(source):
                self._add(now, source, [("ungated-request", f"broker {source} sent an IsrChange")])
        elif kind == _CHANGE_ANSWER:
            self._add(now, source, self._change_answered(now, source, target, message))
        else:
            if kind == _SHOWN and not message.error:
                self.heartbeats.took(self._id_of(source), target, now)
            self._add(now, source, self._told_answered(source, target, message))

    def delivered(self, now: int, source: int, target: int, kind: int, message: Any) -> None:
        """A message of a kind in ZK_DELIVERED arrives at a node, which takes it after this call."""
        self.heartbeats.stepped(target, now)
        if kind == _HEARTBEAT:
            self.heartbeats.arrived(target, source, message, now)
        elif kind == _HEARTBEAT_ANSWER:
            self.heartbeats.heard(target, message)
        elif kind == _CHANGE:
            # No process takes an answer to one before it.
            if self._asked.get((source, message.correlation)) == message:
                vouched = self.heartbeats.vouched(target, message.broker_id)
                self._changes[target, source, message.correlation] = (message, vouched, now)
        else:
            place = (target, source, message.correlation)
            self._told[place] = (message, self.broker_epoch(target))

    def _change_answered(
        self, now: int, controller: int, target: int, response: Any
    ) -> Iterable[Problem]:
        """Judge what a controller granted: its sender's incarnation, its leadership, its ISR."""
        taken = self._changes.pop((controller, target, response.correlation), None)
        if taken is None or response.error:
            return
        request, vouched, since_ns = taken
        known = max(vouched, self.heartbeats.known(controller, request.broker_id))
        changes = [(topic, one) for topic, several in request.topics for one in several]
        for (topic, change), (error, _) in zip(changes, response.results, strict=True):
            if error:
                continue
            what = f"broker {controller} granted isr {change.isr} of {topic}-{change.partition}"
            if request.incarnation_id < known:
                words = f"{what} to incarnation {request.incarnation_id}, it knew {known}"
                yield "epoch-check-bypassed", words
            key = (self.decided.topic_id(topic), change.partition)
            reign = (request.broker_id, change.leader_epoch)
            if reign not in self.decided.reigns(key, since_ns, now):
                words = f"{what} to broker {reign[0]}, which did not lead in epoch {reign[1]} then"
                yield "epoch-check-bypassed", words
            if not change.isr:
                yield "empty-isr", f"{what} to its leader {request.broker_id}"

    def _told_answered(self, node: int, target: int, response: Any) -> Iterable[Problem]:
        request, epoch = self._told.pop((node, target, response.correlation), (None, -1))
        if request is not None:
            yield from self.heartbeats.told(node, request, response.error, broker_epoch=epoch)

    # Notes.

    def _applied(self, now: int, _node: int, note: tuple[Any, ...]) -> Iterable[Problem]:
        yield from self.decided.apply(now, *note[2:5])
        if self.decided.wrote:
            yield from self.heartbeats.wrote(self.decided.controller, now)
        for key, was, led in self.decided.changed:
            yield from self.records.isr_changed(key, was, led)
        self.decided.changed.clear()

    def _elected(self, now: int, node: int, _note: tuple[Any, ...]) -> Iterable[Problem]:
        self.heartbeats.elected(node, now)
        return ()

    def _ill_timed(self, node: int) -> Iterable[Problem]:
        """Judge the time-outs of a broker that takes part."""
        controller_side_ns, broker_side_ns = self.timeouts_ns(node)
        if broker_side_ns <= controller_side_ns:
            words = f"{broker_side_ns / 1e9:.3f} s, the controller's {controller_side_ns / 1e9:.3f}"
            yield "timeouts-out-of-order", f"broker {node} runs with a time-out of {words} s"

    def _id_of(self, node: int) -> int:
        """Return the id under which a broker that runs is registered; its number if under none."""
        epoch, brokers = self.broker_epoch(node), self.decided.brokers
        return next((one for one in brokers if brokers[one].incarnation_id == epoch), node)

    def _loaded(self, now: int, node: int, _note: tuple[Any, ...]) -> Iterable[Problem]:
        self.heartbeats.loaded(node, now)
        return ()

    def _keeps(self, now: int, node: int, note: tuple[Any, ...]) -> Iterable[Problem]:
        broker_id, incarnation, state = note[2:5]
        yield from self.heartbeats.kept(node, broker_id, incarnation, state, now)
        if broker_id not in self.decided.legacy or state >= _ACTIVE:
            return
        # It may not have read yet that the broker has registered as one; or it is gone.
        registered = self.decided.brokers[broker_id]
        if incarnation >= registered.incarnation_id and not registered.fenced:
            yield "legacy-inactive", f"broker {node} keeps legacy broker {broker_id} as {state!r}"

    def _asks(self, now: int, node: int, _note: tuple[Any, ...]) -> Iterable[Problem]:
        self.heartbeats.asked(node, now)
        return ()

    def _settles(self, now: int, node: int, _note: tuple[Any, ...]) -> Iterable[Problem]:
        self.heartbeats.settled(node, now)
        return ()

    def _decides(self, now: int, node: int, note: tuple[Any, ...]) -> Iterable[Problem]:
        key, leader = note[2], note[5]
        elected = self._led.get(key) != leader
        self._led[key] = leader
        return self.heartbeats.decided_by(node, key, leader, elected=elected, now=now)

    def _commits(self, _now: int, node: int, note: tuple[Any, ...]) -> Iterable[Problem]:
        return self.records.high_watermark(node, *note[2:5])

    def _acknowledged(self, _now: int, _node: int, note: tuple[Any, ...]) -> Iterable[Problem]:
        return self.records.acknowledged(note[2], note[3], note[4])

    def _read(self, _now: int, _node: int, note: tuple[Any, ...]) -> Iterable[Problem]:
        return self.records.read(note[2], note[3])

    def _leads(self, _now: int, node: int, note: tuple[Any, ...]) -> Iterable[Problem]:
        return self.records.leads(node, note[2], note[3])

    def _truncated(self, _now: int, node: int, note: tuple[Any, ...]) -> Iterable[Problem]:
        return self.records.truncated(node, note[2])

    def _add(self, now: int, node: int, problems: Iterable[Problem]) -> None:
        for anomaly, words in problems:
            if len(self.findings) < _FINDINGS_MAX:
                self.findings.append(Finding(anomaly=anomaly, time_ns=now, node=node, words=words))


_ACTIVE: Final = 2
_Noted = Callable[[ZkOracle, int, int, tuple[Any, ...]], Iterable[Problem]]
_NOTED: Final[Mapping[str, _Noted]] = {
    notes.ZNODES_CHANGED: ZkOracle._applied,  # noqa: SLF001  # its own
    notes.CONTROLLER_ELECTED: ZkOracle._elected,  # noqa: SLF001
    notes.BROKER_CONTROLLED_STATE: ZkOracle._keeps,  # noqa: SLF001
    notes.ACTIVE: ZkOracle._loaded,  # noqa: SLF001
    notes.DECISION_ASKED: ZkOracle._asks,  # noqa: SLF001
    notes.DECISION_SETTLED: ZkOracle._settles,  # noqa: SLF001
    notes.PARTITION_DECIDED: ZkOracle._decides,  # noqa: SLF001
    notes.HIGH_WATERMARK: ZkOracle._commits,  # noqa: SLF001
    notes.ACKNOWLEDGED: ZkOracle._acknowledged,  # noqa: SLF001
    notes.READ_RECORDS: ZkOracle._read,  # noqa: SLF001
    notes.LEADS: ZkOracle._leads,  # noqa: SLF001
    notes.TRUNCATED: ZkOracle._truncated,  # noqa: SLF001
}
