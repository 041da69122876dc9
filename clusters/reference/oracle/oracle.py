"""The oracle: notes, messages and disks in, findings out. See the package for what it is.

A driver calls `note` for each NOTE, `sent` and `delivered` for messages of the kinds in SENT and
DELIVERED, `started` and `disk_lost` as they happen, and `finish` once the cluster is whole and
quiet.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.clusters.node_port import notes
from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.messages import client, control, data
from fencepost.clusters.reference.oracle.finding import Finding, Nodes
from fencepost.clusters.reference.oracle.leases import Leases
from fencepost.clusters.reference.oracle.metadata_oracle import MetadataOracle, Problem
from fencepost.clusters.reference.oracle.record_oracle import RecordOracle
from fencepost.clusters.reference.oracle.visibility_oracle import VisibilityOracle

_REGISTER: Final = control.BrokerRegistrationRequest.kind
_REGISTERED: Final = control.BrokerRegistrationResponse.kind
_HEARTBEAT: Final = control.BrokerHeartbeatRequest.kind
_HEARTBEAT_ANSWER: Final = control.BrokerHeartbeatResponse.kind
_ALTER: Final = control.AlterPartitionRequest.kind
_ALTER_ANSWER: Final = control.AlterPartitionResponse.kind
_API_VERSIONS: Final = client.ApiVersionsResponse.kind
_SERVED: Final = client.ANSWERS | {
    data.FetchResponse.kind,
    data.ProduceResponse.kind,
    data.ListOffsetsResponse.kind,
}
"""Responses of brokers. Those to fetches count where a client asked."""

SENT: Final = frozenset({_REGISTER, _HEARTBEAT, _HEARTBEAT_ANSWER, _ALTER, _ALTER_ANSWER}) | _SERVED
DELIVERED: Final = frozenset({_REGISTERED, _HEARTBEAT, _HEARTBEAT_ANSWER, _ALTER})

_FINDINGS_MAX: Final = 64
"""The most findings: one broken rule breaks many; the first ones are the story."""


@dataclass(slots=True)
class Oracle:
    """Over one run. `lease_ns` and `min_isr` are the cluster's settings."""

    nodes: Nodes
    lease_ns: int
    min_isr: int = 1
    clients_from: int = 1 << 20
    """Ids from here on are clients'."""
    findings: list[Finding] = field(default_factory=list)
    decided: MetadataOracle = field(default_factory=MetadataOracle)
    records: RecordOracle = field(init=False)
    leases: Leases = field(init=False)
    visibility: VisibilityOracle = field(init=False)

    def __post_init__(self) -> None:
        """Give the ghosts what they share."""
        self.records = RecordOracle(self.decided, self.nodes, self.min_isr)
        self.leases = Leases(self.decided, self.nodes, self.lease_ns)
        self.visibility = VisibilityOracle(self.decided, self.nodes)

    def started(self, node: int) -> None:
        """A node's process begins."""
        self.decided.restarted(node)
        self.leases.started(node)
        self.visibility.started(node)

    def disk_lost(self, node: int, keys: tuple[PartitionKey, ...] | None = None) -> None:
        """A node's disk lost something, of these partitions or of all."""
        self.records.disk_lost(node, keys)

    def note(self, now: int, node: int, note: tuple[Any, ...]) -> None:
        """A node or a client says that something became true: (NOTE, subject, …)."""
        subject = note[1]
        if subject == notes.HIGH_WATERMARK:
            self._add(now, node, self.records.high_watermark(node, *note[2:5]))
        elif subject == notes.ACKNOWLEDGED:
            self._add(now, node, self.records.acknowledged(note[2], note[3], note[4]))
        elif subject == notes.READ_RECORDS:
            self._add(now, node, self.records.read(note[2], note[3]))
        elif subject == notes.COMMITTED_METADATA:
            self._committed(now, node, note[2])
        else:
            self._rarer(now, node, subject, note)

    def sent(self, now: int, source: int, target: int, kind: int, message: Any) -> None:
        """A message of a kind in SENT leaves a node."""
        if kind in _SERVED:
            if target >= self.clients_from:
                self._add(now, source, self.leases.served(source, now))
                if kind == _API_VERSIONS:
                    self._add(now, source, self.visibility.offered(source, message.level))
        elif kind in (_HEARTBEAT, _REGISTER):
            self.leases.heartbeat_sent(source, message, now)
        elif kind == _HEARTBEAT_ANSWER:
            self._add(now, source, self.leases.heartbeat_answered(source, target, message))
        elif kind == _ALTER:
            self._add(now, source, self.records.proposed(source, message))
        elif kind == _ALTER_ANSWER:
            self._add(now, source, self.leases.proposal_answered(source, target, message))

    def delivered(self, now: int, source: int, target: int, kind: int, message: Any) -> None:
        """A message of a kind in DELIVERED arrives at a node, which takes it after this call."""
        if kind == _HEARTBEAT:
            self.leases.heartbeat_taken(target, source, message, now)
        elif kind == _ALTER:
            self.leases.proposal_taken(target, source, message)
        else:
            self.leases.answer_taken(target, message)

    def finish(self, now: int) -> None:
        """Everything was healed, and the cluster is quiet."""
        self._add(now, -1, self.records.finish())

    def _rarer(self, now: int, node: int, subject: str, note: tuple[Any, ...]) -> None:
        if subject == notes.LEADS:
            self._add(now, node, self.records.leads(node, note[2], note[3]))
        elif subject == notes.TRUNCATED:
            self._add(now, node, self.records.truncated(node, note[2]))
        elif subject == notes.PROPOSED:
            self.leases.proposed(node, *note[2:6])
        elif subject == notes.READ_BEGAN:
            self.visibility.read_began(node, note[2])
        elif subject == notes.READ_METADATA:
            self._add(now, node, self.visibility.read(node, note[2], note[3], note[4]))
        elif subject == notes.TOLD_LOWEST:
            self._add(now, node, self.visibility.told(node, note[2], note[3]))
        elif subject == notes.ACKNOWLEDGED_METADATA:
            self._wrote(node, note[2])
        elif subject == notes.BROKER_STATE:
            self.leases.state(node, note[2])
        elif subject == notes.QUORUM_LEADER:
            self._add(now, node, self.decided.was_elected(node, note[2]))
        elif subject == notes.ACTIVE:
            self.leases.is_active(node, note[2], now)
            self.visibility.is_active(node, note[2])
        elif subject == notes.VISIBLE:
            self._add(now, node, self.visibility.is_visible(node, note[2]))

    def _wrote(self, node: int, end_offset: int) -> None:
        batches = self.nodes.metadata(node, end_offset - 1, end_offset)
        self.visibility.wrote(end_offset, batches[-1].epoch if batches else -1)

    def _committed(self, now: int, node: int, end: int) -> None:
        decided, before = self.decided, self.decided.offset
        self._add(now, node, decided.was_counted(node, end, self.nodes, now))
        if decided.offset == before:
            return
        if self.visibility.awaits:
            self._add(now, node, self.visibility.committed(decided.epochs(before)))
        for broker_id, old, new in decided.registered:
            self._add(now, node, self.leases.registered(broker_id, old, new, now))
        for key, was, led in decided.joined:
            self._add(now, node, self.leases.joined(key, was, led))
        for key, was, led in decided.changed:
            self._add(now, node, self.records.isr_changed(key, was, led))
        decided.registered.clear()
        decided.joined.clear()
        decided.changed.clear()
        self._add(now, node, decided.fenced_members())
        self._add(now, node, self.leases.decided_more(now, decided.last_epoch))

    def _add(self, now: int, node: int, problems: Iterable[Problem]) -> None:
        for anomaly, words in problems:
            if len(self.findings) < _FINDINGS_MAX:
                self.findings.append(Finding(anomaly=anomaly, time_ns=now, node=node, words=words))
