"""The right to act as a broker, and its end: heartbeats, leases, proposals and leave.

The oracle sees heartbeats leave and arrive, so it knows both ends of every lease: a broker's runs
from the moment at which it sent the heartbeat that was answered, the controller's from the one at
which it took it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.messages.control import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from fencepost.clusters.reference.oracle.finding import Nodes
from fencepost.clusters.reference.oracle.metadata_oracle import (
    DecidedBroker,
    Led,
    MetadataOracle,
    Problem,
)

_SLACK_NS: Final = 200_000_000
"""Ticks, a drifting clock, and a step that was under way."""
_AMBIGUOUS: Final = -2
"""The value in the place of an epoch that is ambiguous."""
_COMMITS_MIN: Final = 4
"""The number of decisions after a lease's end from which its controller counts as late, beside one
for each broker: of those that fell silent at once, the others may be fenced first.
"""


_Proposed = tuple[tuple[int, int], tuple[AlterPartitionItem, ...]]
"""((broker id, broker epoch) of the sender, what it proposed)."""


@dataclass(slots=True)
class _Judged:
    """A proposal when it was first sent."""

    isr: tuple[int, ...]
    partition_epoch: int
    epochs: tuple[int, ...]
    """The broker epoch on which the leader judged each member."""


@dataclass(slots=True)
class Leases:
    """The ghost of leases. `lease_ns` is what the cluster is configured with."""

    decided: MetadataOracle
    nodes: Nodes
    lease_ns: int
    _asked: dict[tuple[int, int], int] = field(default_factory=dict)
    """The time when a broker sent a heartbeat or registration: by (broker, correlation)."""
    _renewed: dict[int, int] = field(default_factory=dict)
    """The time since when each broker's own lease runs."""
    _heard: dict[int, int] = field(default_factory=dict)
    """The time when an active controller last took a heartbeat of the registered incarnation."""
    _taken: dict[tuple[int, int, int], tuple[int, int]] = field(default_factory=dict)
    """(broker id, broker epoch) of heartbeats, by (controller, source, correlation)."""
    _proposed: dict[tuple[int, int, int], _Proposed] = field(default_factory=dict)
    """The proposals by (controller, source, correlation)."""
    _judged: dict[PartitionKey, list[_Judged]] = field(default_factory=dict)
    _states: dict[int, int] = field(default_factory=dict)
    _late: dict[int, int] = field(default_factory=dict)
    """Decisions since the lease of a silent, unfenced broker was over."""
    _active: int = -1
    _active_epoch: int = -1

    def started(self, node: int) -> None:
        """A process begins: it has no lease and no state yet."""
        self._renewed.pop(node, None)
        self._states.pop(node, None)

    def is_active(self, node: int, epoch: int, now: int) -> None:
        """A controller begins to decide; every lease begins again.

        One that slept since its election, and does not know yet who was elected after it, counts
        for nothing.
        """
        if epoch < self._active_epoch:
            return
        self._active, self._active_epoch = node, epoch
        for broker in self.decided.brokers:
            self._heard[broker] = now

    def state(self, node: int, state: int) -> None:
        """A broker changes its state."""
        self._states[node] = state

    def heartbeat_sent(
        self, node: int, request: BrokerHeartbeatRequest | BrokerRegistrationRequest, now: int
    ) -> None:
        """A broker asks for its lease."""
        self._asked[node, request.correlation] = now

    def heartbeat_taken(
        self, node: int, source: int, request: BrokerHeartbeatRequest, now: int
    ) -> None:
        """A controller gets a heartbeat."""
        key = (node, source, request.correlation)
        # Two incarnations of a broker may use one number: then neither answer is judged.
        self._taken[key] = (
            (request.broker_id, _AMBIGUOUS)
            if key in self._taken
            else (request.broker_id, request.broker_epoch)
        )
        broker = self.decided.brokers.get(request.broker_id)
        if node != self._active or broker is None:
            return
        if request.broker_epoch == broker.broker_epoch:
            self._heard[request.broker_id] = now
            self._late.pop(request.broker_id, None)

    def heartbeat_answered(
        self, node: int, target: int, response: BrokerHeartbeatResponse
    ) -> Iterator[Problem]:
        """A controller answers a heartbeat."""
        taken = self._taken.pop((node, target, response.correlation), None)
        if taken is None or response.error or node != self._active:
            return  # a controller deposed without knowing it renews leases that do not count
        broker_id, broker_epoch = taken
        broker = self.decided.brokers.get(broker_id)
        if broker is not None and broker_epoch not in (_AMBIGUOUS, broker.broker_epoch):
            yield (
                "shared-identity",
                (
                    f"controller {node} renews the lease of broker {broker_id} for epoch "
                    f"{broker_epoch}, registered is {broker.broker_epoch}"
                ),
            )
        if response.next_state == BrokerState.NOT_RUNNING:
            for key, led in self.decided.partitions.items():
                if led.leader == broker_id:
                    yield (
                        "unsafe-shutdown",
                        (
                            f"broker {broker_id} may go and leads {key} "
                            f"in leader epoch {led.leader_epoch}"
                        ),
                    )
                    return

    def answer_taken(
        self, node: int, response: BrokerHeartbeatResponse | BrokerRegistrationResponse
    ) -> None:
        """A broker gets the answer to a heartbeat or a registration."""
        asked = self._asked.pop((node, response.correlation), None)
        if asked is not None and response.error == 0:
            self._renewed[node] = max(asked, self._renewed.get(node, 0))

    def served(self, node: int, now: int) -> Iterator[Problem]:
        """A broker answers a client."""
        renewed = self._renewed.get(node)
        over_ns = -1 if renewed is None else now - renewed - self.lease_ns
        state = self._states.get(node, BrokerState.NOT_RUNNING)
        if over_ns > _SLACK_NS:
            yield (
                "served-while-fenced",
                f"broker {node} answers a client {over_ns / 1e6:.0f} ms after its lease",
            )
        elif state not in (BrokerState.RUNNING, BrokerState.PENDING_CONTROLLED_SHUTDOWN):
            yield (
                "served-while-fenced",
                f"broker {node} answers a client in state {BrokerState(state).name}",
            )

    def decided_more(self, now: int, epoch: int) -> Iterator[Problem]:
        """Something of this epoch was committed: silent brokers should be fenced by now.

        What a leader commits of its predecessors' before it is active itself counts for nothing.
        """
        if epoch != self._active_epoch:
            return
        for broker_id, broker in self.decided.brokers.items():
            heard = max(self._heard.get(broker_id, 0), broker.registered_ns)
            if broker.fenced or now - heard <= self.lease_ns + _SLACK_NS:
                self._late.pop(broker_id, None)
                continue
            self._late[broker_id] = self._late.get(broker_id, 0) + 1
            if self._late[broker_id] == _COMMITS_MIN + len(self.decided.brokers):
                yield (
                    "fencing-too-late",
                    (
                        f"broker {broker_id} is unfenced {(now - heard) / 1e6:.0f} ms after its "
                        f"last heartbeat, its lease is {self.lease_ns / 1e6:.0f} ms"
                    ),
                )

    def registered(
        self, broker_id: int, old: DecidedBroker | None, new: DecidedBroker, now: int
    ) -> Iterator[Problem]:
        """A registration was decided."""
        heard = self._heard.get(broker_id, -self.lease_ns)
        self._heard[broker_id] = now
        if old is None or old.leaving or old.incarnation_id == new.incarnation_id:
            return
        if old.fenced and old.fenced_ns != now:
            return  # fenced before: not by this very registration
        if now - heard < self.lease_ns - _SLACK_NS:
            yield (
                "shared-identity",
                (
                    f"broker {broker_id} is registered for a second process "
                    f"{(now - heard) / 1e6:.0f} ms after a heartbeat of the first"
                ),
            )

    def proposed(
        self,
        node: int,
        key: PartitionKey,
        isr: tuple[int, ...],
        partition_epoch: int,
        fetched: tuple[int, ...],
    ) -> None:
        """A leader wants an ISR: what it judges each member by is remembered."""
        epochs = (
            self._judged_epoch(node, member, epoch)
            for member, epoch in zip(isr, fetched, strict=True)
        )
        judged = _Judged(isr, partition_epoch, tuple(epochs))
        known = self._judged.setdefault(key, [])
        if judged not in known:
            known.append(judged)
            del known[:-16]

    def proposal_taken(self, node: int, source: int, request: AlterPartitionRequest) -> None:
        """A controller gets a proposal."""
        sender = (request.broker_id, request.broker_epoch)
        key = (node, source, request.correlation)
        self._proposed[key] = ((-1, -1), ()) if key in self._proposed else (sender, request.items)

    def proposal_answered(
        self, node: int, target: int, response: AlterPartitionResponse
    ) -> Iterator[Problem]:
        """A controller answers a proposal: a mismatch of epochs must have been refused."""
        asked_by, asked = self._proposed.pop((node, target, response.correlation), ((-1, -1), ()))
        if response.error:
            return
        for item, answer in zip(asked, response.items, strict=False):
            if answer.error:
                continue
            yield from self._accepted(asked_by, item)
            for member, epoch in zip(item.isr, item.isr_epochs, strict=False):
                broker = self.decided.brokers.get(member)
                if epoch >= 0 and broker is not None and broker.broker_epoch != epoch:
                    yield (
                        "epoch-check-bypassed",
                        (
                            f"{item.key}: member {member} of epoch {epoch} was accepted, "
                            f"registered is {broker.broker_epoch}"
                        ),
                    )

    def joined(self, key: PartitionKey, old: Led, new: Led) -> Iterator[Problem]:
        """Members joined an ISR: they must have been judged by the epochs that they have."""
        proposals = [
            judged
            for judged in self._judged.get(key, ())
            if judged.isr == new.isr and judged.partition_epoch == old.partition_epoch
        ]
        for member in sorted(set(new.isr) - set(old.isr)):
            broker = self.decided.brokers.get(member)
            judged_by = [dict(zip(one.isr, one.epochs, strict=True))[member] for one in proposals]
            if broker is None or not judged_by or -1 in judged_by:
                continue
            # It is not known which of several proposals arrived: one good one will do.
            if broker.broker_epoch not in judged_by:
                yield (
                    "stale-epoch-join",
                    (
                        f"broker {member} joins the isr of {key}, judged in sync under epoch "
                        f"{judged_by[-1]}, registered with {broker.broker_epoch}"
                    ),
                )

    def _accepted(self, sender: tuple[int, int], item: AlterPartitionItem) -> Iterator[Problem]:
        """A proposal was accepted: it must have come from who leads, of what there was then."""
        led = self.decided.partitions.get(item.key)
        if led is None:
            return
        broker = self.decided.brokers.get(sender[0])
        if broker is not None and 0 <= sender[1] != broker.broker_epoch:
            yield (
                "illegal-transition",
                (
                    f"{item.key}: a proposal by broker {sender[0]} of epoch {sender[1]} was "
                    f"accepted, registered is {broker.broker_epoch}"
                ),
            )
        if sender[0] != led.leader and led.leader >= 0:
            yield (
                "two-leaders",
                (
                    f"{item.key}: a proposal by broker {sender[0]} was accepted, "
                    f"which broker {led.leader} leads"
                ),
            )
        if item.leader_epoch != led.leader_epoch:
            yield (
                "illegal-transition",
                (
                    f"{item.key}: a proposal of leader epoch {item.leader_epoch} was accepted "
                    f"in leader epoch {led.leader_epoch}"
                ),
            )
        if not led.partition_epoch - 1 <= item.partition_epoch <= led.partition_epoch:
            yield (
                "nonlinearizable-isr",
                (
                    f"{item.key}: a proposal of partition epoch {item.partition_epoch} was "
                    f"accepted, now it is {led.partition_epoch}"
                ),
            )

    def _judged_epoch(self, node: int, member: int, fetched: int) -> int:
        """The epoch of the fetches that the leader saw; below version 15 the one registered now."""
        if member == node:
            return -1
        broker = self.decided.brokers.get(member)
        return fetched if fetched >= 0 or broker is None else broker.broker_epoch
