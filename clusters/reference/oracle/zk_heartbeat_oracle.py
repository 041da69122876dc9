"""The ghost of heartbeats in the ZooKeeper generation: who may act as broker, and as controller.

The oracle sees heartbeats leave and arrive. A broker is in contact for the broker-side time-out
from when it sent the last heartbeat that was answered; a controller has heard of a broker when a
heartbeat of it arrived. What a controller knows of incarnations is what it has noted itself.

A controller decides one thing after the other, and each waits for ZooKeeper. So a silent broker may
lead on for as long as ZooKeeper does not answer, or the controller stands still. That it goes on is
seen by what it does, at least by the heartbeats of its own broker.

Source: the draft "Controller heartbeats, broker incarnation ids"; KIP-380.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.oracle.metadata_oracle import Problem
from fencepost.clusters.reference.oracle.znodes import ZnodeDecisions

_SLACK_NS: Final = 300_000_000
"""Ticks, a drifting clock, and a step that was under way."""
_CONTROLLER_SLACK_NS: Final = 3_000_000_000
"""Time for a controller that could decide until a silent broker leads no more, and until it has
read that a broker has registered anew."""
_NONE: Final = 0
_NOBODY: Final = -1
_INVALID_INCARNATION: Final = "INVALID_INCARNATION_ID"
_INACTIVE: Final = 1
_ACTIVE: Final = 2
_STOPPING: Final = 3
_TARGETS: Final = frozenset({_ACTIVE, _STOPPING})
_STILL_NS: Final = 1_000_000_000
"""A controller that does nothing for so long stands still."""


@dataclass(slots=True)
class _Incumbent:
    """From the election of a controller on, at `begun_ns`."""

    begun_ns: int
    loaded_ns: int
    """The time when it had read everything: it counts the silence of brokers from then on."""
    stepped_ns: int
    """The time when it did something last."""
    known: dict[int, int] = field(default_factory=dict)
    """The highest incarnation id by broker."""
    vouched: dict[int, int] = field(default_factory=dict)
    """The highest incarnation id in a heartbeat since it is active, which it takes over (Z04)."""
    inactive_ns: dict[int, int] = field(default_factory=dict)
    """The time when it found a broker inactive; none: it does not."""
    taken_ns: dict[int, int] = field(default_factory=dict)
    """The time when a broker answered an UpdateMetadata last."""
    heard_ns: dict[int, int] = field(default_factory=dict)
    """The time when a heartbeat last arrived, by broker."""
    asked_ns: int | None = None
    """The time when it asked ZooKeeper for its newest decision: it knew no more than then."""
    _waiting_ns: int | None = None
    """The time since when it has been waiting for what it asked for; None: it does not wait."""
    _hindered_ns: list[tuple[int, int]] = field(default_factory=list)
    """The times for which it waited or stood still: from, until."""

    def vouch(self, broker_id: int, incarnation: int) -> None:
        """A heartbeat of this incarnation arrives."""
        self.vouched[broker_id] = max(incarnation, self.vouched.get(broker_id, -1))

    def stepped(self, now: int) -> None:
        """It does something, or takes what arrives."""
        if now - self.stepped_ns > _STILL_NS:
            self._hindered_ns.append((self.stepped_ns, now))
        self.stepped_ns = now

    def asked(self, now: int) -> None:
        """It has decided something, which holds once ZooKeeper has it."""
        self.asked_ns = now
        if self._waiting_ns is None:
            self._waiting_ns = now

    def settled(self, now: int) -> None:
        """It knows what has become of its decision."""
        if self._waiting_ns is not None:
            self._hindered_ns.append((self._waiting_ns, now))
            self._waiting_ns = None

    def free_ns(self, begin_ns: int, end_ns: int) -> int:
        """Return for how long of this time it could decide something."""
        waiting_ns = end_ns if self._waiting_ns is None else self._waiting_ns
        free_ns, at_ns = 0, begin_ns
        for since_ns, until_ns in sorted((*self._hindered_ns, (waiting_ns, end_ns))):
            free_ns += max(0, min(since_ns, end_ns) - at_ns)
            at_ns = max(at_ns, until_ns)
        return free_ns + max(0, end_ns - at_ns)


@dataclass(slots=True)
class ZkHeartbeatOracle:
    """The ghost. The time-outs are the cluster's; `refusal` is INVALID_INCARNATION_ID's code."""

    decided: ZnodeDecisions
    controller_side_ns: int
    broker_side_ns: int
    refusal: int
    _sent: dict[tuple[int, int], tuple[Any, int]] = field(default_factory=dict)
    """Each heartbeat and when it was sent, by (broker, correlation); each process counts anew."""
    _contact: dict[int, int] = field(default_factory=dict)
    """The time when the last heartbeat was sent that was answered, by broker."""
    _heartbeats: dict[tuple[int, int, int], tuple[Any, int]] = field(default_factory=dict)
    """With the incarnation that the controller knew then, by (controller, source, correlation)."""
    _offices: dict[int, _Incumbent] = field(default_factory=dict)
    """The last one of each controller."""
    _told_epoch: dict[int, int] = field(default_factory=dict)
    """The highest controller epoch that a broker has answered, by broker."""

    def started(self, node: int) -> None:
        """A process begins."""
        self._contact.pop(node, None)
        self._told_epoch.pop(node, None)
        self._offices.pop(node, None)

    def elected(self, node: int, now: int) -> None:
        """A broker is the controller from here on."""
        self._offices[node] = _Incumbent(begun_ns=now, loaded_ns=now, stepped_ns=now)

    def loaded(self, node: int, now: int) -> None:
        """A new controller has read everything, and decides from here on."""
        self._offices[node].loaded_ns = now

    def stepped(self, node: int, now: int) -> None:
        """A node does something, or takes what arrives."""
        office = self._offices.get(node)
        if office is not None:
            office.stepped(now)

    def kept(
        self, node: int, broker_id: int, incarnation: int, state: int, now: int
    ) -> Iterator[Problem]:
        """A controller keeps a state of a broker, under this incarnation."""
        office = self._offices[node]
        office.known[broker_id] = max(incarnation, office.known.get(broker_id, -1))
        if state == _INACTIVE:
            office.inactive_ns[broker_id] = now
            return
        since_ns = office.inactive_ns.pop(broker_id, None)
        legacy = broker_id in self.decided.legacy
        if since_ns is None or state != _ACTIVE or node == broker_id or legacy:
            return
        if office.taken_ns.get(broker_id, -1) < since_ns:
            words = f"broker {node} takes broker {broker_id} for active, which was inactive since"
            yield "unfenced-too-early", f"{words} {since_ns / 1e9:.3f} s and took nothing since"

    def took(self, node: int, controller: int, now: int) -> None:
        """A broker has taken what a controller told it to show."""
        office = self._offices.get(controller)
        if office is not None:
            office.taken_ns[node] = now

    def known(self, node: int, broker_id: int) -> int:
        """Return the highest incarnation id that a controller knows of a broker; -1: none."""
        office = self._offices.get(node)
        return -1 if office is None else office.known.get(broker_id, -1)

    def vouched(self, node: int, broker_id: int) -> int:
        """Return the highest incarnation id in a heartbeat that reached an active controller."""
        office = self._offices.get(node)
        return -1 if office is None else office.vouched.get(broker_id, -1)

    def asked(self, controller: int, now: int) -> None:
        """A controller has decided something, which holds once ZooKeeper has it."""
        self._offices[controller].asked(now)

    def settled(self, controller: int, now: int) -> None:
        """A controller knows what has become of its decision."""
        self._offices[controller].settled(now)

    # Heartbeats.

    def sent(self, node: int, request: Any, now: int) -> None:
        """A broker sends a heartbeat."""
        self._sent[node, request.correlation] = (request, now)

    def arrived(self, controller: int, source: int, request: Any, now: int) -> None:
        """A controller gets a heartbeat."""
        office = self._offices.get(controller)
        if office is not None:
            office.heard_ns[request.broker_id] = now
            if office.loaded_ns > office.begun_ns:
                office.vouch(request.broker_id, request.incarnation_id)
        sent, _ = self._sent.get((source, request.correlation), (None, 0))
        if sent == request:  # No process takes an answer to one before it.
            known = self.known(controller, request.broker_id)
            self._heartbeats[controller, source, request.correlation] = (request, known)

    def answered(self, controller: int, target: int, response: Any) -> Iterator[Problem]:
        """A controller answers a heartbeat."""
        taken = self._heartbeats.get((controller, target, response.correlation))
        if taken is None or controller not in self._offices:
            return
        request, known = taken
        told = f"broker {controller} answered a heartbeat of broker {request.broker_id}"
        if response.error == _NONE:
            if request.broker_id < 0 or request.target_state not in _TARGETS:
                yield "bad-heartbeat-accepted", f"{told} with target state {request.target_state}"
            if request.incarnation_id < known:
                words = f"{told} of incarnation {request.incarnation_id}, it knew {known}"
                yield "shared-identity", words
        elif response.error == self.refusal and request.incarnation_id >= known:
            newest = self.decided.brokers.get(request.broker_id)
            if newest is not None and request.incarnation_id >= newest.incarnation_id:
                words = f"{told} of incarnation {request.incarnation_id}: {_INVALID_INCARNATION}"
                yield "valid-incarnation-refused", words

    def heard(self, node: int, response: Any) -> None:
        """A broker gets the answer to a heartbeat."""
        sent = self._sent.get((node, response.correlation))
        if response.error == _NONE and sent is not None:
            self._contact[node] = max(sent[1], self._contact.get(node, 0))

    def served(self, node: int, now: int) -> Iterator[Problem]:
        """A broker that sends heartbeats answers a client."""
        since_ns = self._contact.get(node)
        drift_ns = self.broker_side_ns // 100
        if since_ns is None or now - since_ns <= self.broker_side_ns + drift_ns + _SLACK_NS:
            return
        words = (
            f"broker {node} answered a client {(now - since_ns) / 1e9:.3f} s after the heartbeat"
        )
        yield "served-while-fenced", f"{words} that was answered last"

    # Decisions of controllers, and their requests to brokers.

    def decided_by(
        self, controller: int, key: PartitionKey, leader: int, *, elected: bool, now: int
    ) -> Iterator[Problem]:
        """A controller has written a state; `elected`: with a leader that did not lead before."""
        office = self._offices[controller]
        due_ns = self._silent_ns(office, leader) if elected and leader != controller else None
        decided_ns = now if office.asked_ns is None else office.asked_ns
        if due_ns is not None and decided_ns > due_ns:
            heard_ns = office.heard_ns.get(leader)
            last = "never" if heard_ns is None else f"at {heard_ns / 1e9:.3f} s"
            yield (
                "inactive-leader",
                f"broker {controller} made broker {leader} lead {key}; heard of it {last}",
            )

    def told(self, node: int, request: Any, error: int, *, broker_epoch: int) -> Iterator[Problem]:
        """A broker answers a controller's request; `broker_epoch` is its own."""
        newest = self._told_epoch.get(node, -1)
        if error == _NONE:
            what = f"broker {node} carried out a {type(request).__name__} of controller epoch"
            if request.controller_epoch < newest:
                words = f"{what} {request.controller_epoch}, after one of {newest}"
                yield "stale-request-accepted", words
            if 0 <= request.broker_epoch < broker_epoch:
                words = f"{what} {request.controller_epoch} for broker epoch {request.broker_epoch}"
                yield "stale-request-accepted", f"{words}, its own is {broker_epoch}"
            self._told_epoch[node] = max(newest, request.controller_epoch)

    def wrote(self, controller: int, now: int) -> Iterator[Problem]:
        """The controller wrote something: it lived, and could have given silent leaders up."""
        office = self._offices.get(controller)
        if office is None:
            return
        decided_ns = now if office.asked_ns is None else office.asked_ns
        led: dict[int, PartitionKey] = {}
        for key, one in self.decided.partitions.items():
            if self.decided.names.get(key[0]) not in self.decided.deleting:
                led.setdefault(one.leader, key)
        for leader, key in led.items():
            due_ns = None if leader == controller else self._silent_ns(office, leader)
            if due_ns is None or decided_ns - due_ns <= _CONTROLLER_SLACK_NS:
                continue
            if office.free_ns(due_ns, decided_ns) > _CONTROLLER_SLACK_NS:
                yield (
                    "inactive-leader",
                    f"broker {leader} leads {key} though broker {controller} has not heard of it",
                )

    def _silent_ns(self, office: _Incumbent, leader: int) -> int | None:
        """Return the time after which a controller must take a broker for silent; None: never."""
        if leader == _NOBODY or leader in self.decided.legacy:
            return None
        registered = self.decided.brokers.get(leader)
        heard_ns = office.heard_ns.get(leader)
        if heard_ns is None and registered and registered.registered_ns > office.begun_ns:
            is_read = office.known.get(leader, -1) >= registered.incarnation_id
            return registered.registered_ns + (0 if is_read else _CONTROLLER_SLACK_NS)
        since_ns = max(heard_ns or 0, office.loaded_ns)
        return since_ns + self.controller_side_ns + _SLACK_NS
