"""The ghost of the znodes: what a cluster of the ZooKeeper generation has decided, and who did.

It reads what the servers of the model apply, transaction by transaction, and makes of it the state
that `Decisions` has: brokers by their registrations, partitions by their states. A broker is
"fenced" here while it has no registration.

Judged are the decisions themselves: no leader epoch goes back, no ISR is without its leader, and no
session that was a controller's writes a state once another one is the controller's, but for a
leader's own ISR.
"""

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.oracle.metadata_oracle import (
    DecidedBroker,
    Decisions,
    Led,
    Problem,
)

_NO_LEADER: Final = -1
_LEGACY: Final = 4
_IDS: Final = "/brokers/ids/"
_TOPICS: Final = "/brokers/topics/"
_CONFIGS: Final = "/config/topics/"
_DELETIONS: Final = "/admin/delete_topics/"
_CONTROLLER: Final = "/controller"
_CONTROLLER_EPOCH: Final = "/controller_epoch"
_STATE_PARTS: Final = 4
"""The parts of a state's path behind /brokers/topics: topic, "partitions", partition, "state"."""

_Json = Mapping[str, Any]


@dataclass(slots=True)
class ZnodeDecisions(Decisions):
    """The decisions, up to the last transaction that any server has applied."""

    zxid: int = 0
    changed: list[tuple[PartitionKey, Led, Led]] = field(default_factory=list)
    """(key, before, after) of changes of ISRs, until a reader clears them."""
    legacy: set[int] = field(default_factory=set)
    """The brokers that registered as legacy last."""
    deleting: set[str] = field(default_factory=set)
    """The topics that are to be deleted: they are led as they were until they are gone."""
    controller: int = -1
    """The broker in /controller; -1: none."""
    controller_epoch: int = -1
    _reigns: dict[PartitionKey, list[tuple[int, int, int]]] = field(default_factory=dict)
    """(since when, leader, leader epoch) of each partition, in order."""
    wrote: bool = False
    """True if the last transaction was the controller's in office."""
    _office: int = 0
    """The session of the controller in office, or of the last one."""
    _offices: set[int] = field(default_factory=set)
    """The sessions that were ever a controller's."""
    _sessions: dict[int, int] = field(default_factory=dict)
    """The session by which each broker is registered."""
    _ids_of_disks: dict[str, int] = field(default_factory=dict)
    """The id that each host has registered last, and so has on its disk."""
    _ids: dict[str, int] = field(default_factory=dict)
    """Topic ids by name."""
    _replicas: dict[PartitionKey, tuple[int, ...]] = field(default_factory=dict)

    def apply(
        self,
        now: int,
        zxid: int,
        session: int,
        changes: tuple[tuple[str, bytes | None, int], ...],
    ) -> Iterator[Problem]:
        """Take a transaction, unless another server has applied it before."""
        self.wrote = False
        if zxid <= self.zxid:
            return
        self.zxid = zxid
        self.wrote = session == self._office and self.controller >= 0
        for path, data, version in changes:
            if path.startswith(_IDS):
                yield from self._registered(now, zxid, session, int(path.removeprefix(_IDS)), data)
            elif path.startswith(_TOPICS):
                yield from self._of_topic(now, session, path.removeprefix(_TOPICS), data, version)
            elif path.startswith(_CONFIGS):
                self._configured(path.removeprefix(_CONFIGS), data)
            elif path.startswith(_DELETIONS):
                name = path.removeprefix(_DELETIONS)
                (self.deleting.discard if data is None else self.deleting.add)(name)
            elif path == _CONTROLLER:
                self.controller = -1 if data is None else int(_content(data)["brokerid"])
            elif path == _CONTROLLER_EPOCH and data:
                self.controller_epoch = int(data)
                if self.controller >= 0:
                    self._office = session
                    self._offices.add(session)

    def topic_id(self, topic: str) -> int:
        """Return the id of the topic of this name; -1 if it does not exist."""
        return self._ids.get(topic, -1)

    def reigns(self, key: PartitionKey, from_ns: int, until_ns: int) -> set[tuple[int, int]]:
        """Return the (leader, leader epoch) of a partition that held at any time in between."""
        found: set[tuple[int, int]] = set()
        for since_ns, leader, epoch in reversed(self._reigns.get(key, [])):
            if since_ns <= until_ns:
                found.add((leader, epoch))
            if since_ns <= from_ns:
                break
        return found

    def _registered(
        self, now: int, zxid: int, session: int, broker_id: int, data: bytes | None
    ) -> Iterator[Problem]:
        if data is None:
            if broker_id in self.brokers:
                self.brokers[broker_id].fenced = True
                self.brokers[broker_id].fenced_ns = now
            return
        known = self.brokers.get(broker_id)
        if known is None or known.fenced:
            self.brokers[broker_id] = DecidedBroker(zxid, zxid, False, False, (), now)
        self._sessions[broker_id] = session
        info = _content(data)
        is_legacy = int(info.get("version", 0)) == _LEGACY
        (self.legacy.add if is_legacy else self.legacy.discard)(broker_id)
        host = str(info.get("host", ""))
        before = self._ids_of_disks.setdefault(host, broker_id)
        if before != broker_id:
            self._ids_of_disks[host] = broker_id
            yield "wrong-id", f"host {host} registers id {broker_id}, and its disk has {before}"

    def disk_lost(self, host: str) -> None:
        """A host's disk was wiped: its broker may find another id."""
        self._ids_of_disks.pop(host, None)

    def _of_topic(
        self, now: int, session: int, path: str, data: bytes | None, version: int
    ) -> Iterator[Problem]:
        parts = path.split("/")
        topic = parts[0]
        if len(parts) == 1:
            self._assigned(topic, data)
        elif len(parts) == _STATE_PARTS and data and topic in self._ids:
            key = (self._ids[topic], int(parts[2]))
            state = _content(data)
            reign = (int(state["leader"]), int(state["leader_epoch"]))
            reigns = self._reigns.setdefault(key, [])
            if not reigns or reigns[-1][1:] != reign:
                reigns.append((now, *reign))
            yield from self._state(key, state, version, session)

    def _assigned(self, topic: str, data: bytes | None) -> None:
        if data is None:
            topic_id = self._ids.pop(topic, None)
            if topic_id is not None:
                self.names.pop(topic_id, None)
                for key in [key for key in self.partitions if key[0] == topic_id]:
                    del self.partitions[key]
            return
        content = _content(data)
        topic_id = int.from_bytes(urlsafe_b64decode(content["topic_id"] + "=="), "big")
        self._ids[topic] = topic_id
        self.names[topic_id] = topic
        for partition, replicas in content["partitions"].items():
            self._replicas[topic_id, int(partition)] = tuple(replicas)

    def _state(
        self, key: PartitionKey, state: _Json, version: int, session: int
    ) -> Iterator[Problem]:
        isr, leader, epoch = tuple(state["isr"]), int(state["leader"]), int(state["leader_epoch"])
        old = self.partitions.get(key)
        new = Led(self._replicas.get(key, ()), isr, leader, epoch, version)
        self.partitions[key] = new
        if not isr:
            yield "empty-isr", f"{key} has no isr at version {version}"
        elif leader != _NO_LEADER and leader not in isr:
            yield "two-leaders", f"{key} has leader {leader} and isr {isr} at version {version}"
        if old is None:
            return
        if epoch < old.leader_epoch:
            words = f"{key} has leader epoch {epoch} at version {version}, after {old.leader_epoch}"
            yield "epoch-went-back", words
        own = (old.leader, old.leader_epoch) == (leader, epoch) and (
            self._sessions.get(leader) == session
        )
        if session in self._offices and session != self._office and not own:
            yield (
                "deposed-controller-write",
                (
                    f"version {version} of {key} was written by session {session:#x}, which is "
                    f"the controller's no more: that is {self._office:#x}"
                ),
            )
        if old.isr != isr:
            self.changed.append((key, old, new))

    def _configured(self, topic: str, data: bytes | None) -> None:
        for known in [one for one in self.settings if one[0] == topic]:
            del self.settings[known]
        for name, value in _content(data or b"{}").get("config", {}).items():
            self.settings[topic, name] = str(value)


def _content(data: bytes) -> _Json:
    found: _Json = json.loads(data)
    return found
