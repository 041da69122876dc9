"""An active controller on a quorum that commits when the test says so, and brokers as requests."""

from collections.abc import Callable
from typing import Any

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.node_port.effects import CLOSE, NOTE, SEND, Effects
from fencepost.clusters.node_port.storage import MetadataBatch, PartitionKey
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.configuration import Configuration, S
from fencepost.clusters.reference.nodes.control.active import ActiveController
from fencepost.clusters.reference.nodes.image import MetadataImage, PartitionImage, Registration
from fencepost.clusters.reference.nodes.messages.control import (
    AlterPartitionItem,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    CreateTopicsRequest,
    NewTopic,
)
from fencepost.clusters.reference.nodes.quorum.metadata_log import MetadataLog
from fencepost.clusters.reference.nodes.quorum.replay import Replayer
from fencepost.clusters.reference.nodes.records import LeaderChangeMessage, MetadataRecord
from fencepost.clusters.reference.nodes.rules import Rules

CLUSTER = "test-cluster"
CONTROLLER = 1_000
LEASE = 18 * S
FEATURES = (("metadata.version", 1, 3),)


class StandInQuorum:
    """A voter that leads alone; nothing is committed before `commit`."""

    def __init__(self) -> None:
        self.log = MetadataLog()
        self.epoch = 0
        self.leader_id = -1
        self.is_leader = False
        self.epoch_start = -1

    def lead(self, epoch: int) -> None:
        self.epoch, self.leader_id, self.is_leader = epoch, CONTROLLER, True
        self.epoch_start = self.log.end
        self._add((LeaderChangeMessage(CONTROLLER, (CONTROLLER,)),), [])

    def append(self, now: int, records: tuple[MetadataRecord, ...], effects: Effects) -> int:
        assert self.is_leader, now
        assert records
        self._add(records, effects)
        return self.log.end

    def commit(self) -> None:
        self.log.commit(self.log.end, [])

    def _add(self, records: tuple[MetadataRecord, ...], effects: Effects) -> None:
        self.log.append(MetadataBatch(self.log.end, self.epoch, records), effects)


class Desk:
    """The controller's desk: ask it, let time pass, commit, and see what it answers."""

    def __init__(self, *off: str, level: int = 3, active: bool = True, **settings: Any) -> None:
        self.now = 0
        self.commits = True
        """Whether every batch is committed at once."""
        self.quorum = StandInQuorum()
        self.replayer = Replayer()
        self.configuration = Configuration(
            node_id=CONTROLLER,
            is_controller=True,
            voters=(CONTROLLER,),
            cluster_id=CLUSTER,
            level=level,
            **{"noop_interval_ns": 0, **settings},
        )
        self.rules = Rules().without(*off)
        self.effects: Effects = []
        self.watch: Callable[[], None] = lambda: None
        """Called before anything more is committed, and after it is replayed."""
        self.boot()
        if active:
            self.elect()

    def boot(self) -> None:
        """The controller's process begins, on the log as it is."""
        self.controller = ActiveController(
            self.configuration,
            self.rules,
            voter=self.quorum,
            replayer=self.replayer,
            alarm=Alarm(),
        )

    def elect(self) -> None:
        """It is elected, in the next epoch, and becomes active."""
        self.quorum.lead(self.quorum.epoch + 1)
        self.quorum.commit()
        self.settle()

    def depose(self, leader_id: int = -1) -> None:
        """Another one leads in the next epoch."""
        self.quorum.epoch += 1
        self.quorum.is_leader, self.quorum.leader_id = False, leader_id
        self.settle()

    @property
    def image(self) -> MetadataImage:
        return self.replayer.image

    def ask(self, request: Any, source: int = -7) -> Any:
        """What it is answered with by the time all is done; None: not yet; CLOSE: closed."""
        before = len(self.effects)
        self.controller.handle(self.now, source, request, self.effects)
        self.settle()
        return self.answer_to(source, since=before)

    def settle(self) -> None:
        self._replay()
        while self.controller.settle(self.now, self.effects):
            self._replay()

    def _replay(self) -> None:
        self.watch()
        if self.commits:
            self.quorum.commit()
        self.controller.replayed(
            self.now, self.replayer.advance(self.quorum.log, self.quorum.log.high_watermark)
        )
        self.watch()

    def commit(self) -> None:
        """Commit what is appended, once, and go on."""
        self.quorum.commit()
        self.settle()

    def pass_time(self, time_ns: int) -> None:
        self.now += time_ns
        self.controller.tick(self.now, self.effects)
        self.settle()

    def answer_to(self, source: int, *, since: int = 0) -> Any:
        found = [
            one for one in self.effects[since:] if one[0] in {SEND, CLOSE} and one[1] == source
        ]
        assert len(found) <= 1, found
        if not found:
            return None
        return found[0][2] if found[0][0] == SEND else CLOSE

    def answers(self) -> list[tuple[int, Any]]:
        """All answers so far: (source, response)."""
        return [(one[1], one[2]) for one in self.effects if one[0] == SEND]

    def notes(self, subject: str) -> list[tuple[Any, ...]]:
        return [one[2:] for one in self.effects if one[0] == NOTE and one[1] == subject]

    def records(self, since: int = 0) -> list[MetadataRecord]:
        """What was appended from this offset on."""
        log = self.quorum.log
        batches = log.batches(since, log.end)
        return [record for batch in batches for record in batch.records]

    # Brokers.

    def register(self, broker_id: int, incarnation_id: int = 1, **fields: Any) -> Any:
        return self.ask(registration(broker_id, incarnation_id, **fields), source=broker_id)

    def heartbeat(
        self,
        broker_id: int,
        target: BrokerState = BrokerState.RUNNING,
        *,
        offset: int | None = None,
        epoch: int | None = None,
        level: int = 3,
    ) -> Any:
        """A heartbeat of the registered incarnation, which has applied everything."""
        known = self.image.brokers.get(broker_id)
        request = BrokerHeartbeatRequest(
            0,
            broker_id,
            (-1 if known is None else known.broker_epoch) if epoch is None else epoch,
            self.image.offset if offset is None else offset,
            target,
            level,
        )
        return self.ask(request, source=broker_id)

    def brokers(self, *ids: int) -> None:
        """These are registered and unfenced."""
        for broker_id in ids:
            assert self.register(broker_id, incarnation_id=broker_id * 100).error == 0
            assert self.heartbeat(broker_id).next_state == BrokerState.RUNNING

    def catch_up(self, *ids: int) -> None:
        """These have applied everything, and say so."""
        for broker_id in ids:
            self.heartbeat(broker_id)

    def outlast(self, *ids: int) -> None:
        """The leases of all other brokers end."""
        self.pass_time(LEASE - 1)
        self.catch_up(*ids)
        self.pass_time(1)

    def topic(self, *assignment: tuple[int, ...], name: str = "t") -> PartitionKey:
        """Create a topic; the key of its first partition."""
        new = NewTopic(name, -1, -1, assignment)
        self.ask(CreateTopicsRequest(0, (new,), S))
        return (self.image.topics[name], 0)

    def partition(self, key: PartitionKey) -> PartitionImage:
        return self.image.partitions[key]

    def broker(self, broker_id: int) -> Registration:
        return self.image.brokers[broker_id]

    def propose(self, key: PartitionKey, *isr: int, epochs: Any = None, **fields: Any) -> Any:
        """Its leader proposes this ISR; the answer's only item, or the error for all."""
        request = self.proposal(key, *isr, epochs=epochs, **fields)
        answer = self.ask(request, source=request.broker_id)
        return answer.items[0] if answer.items else answer

    def proposal(
        self,
        key: PartitionKey,
        *isr: int,
        epochs: Any = None,
        sender: int | None = None,
        sender_epoch: int | None = None,
        leader_epoch: int | None = None,
        partition_epoch: int | None = None,
        recovering: bool = False,
    ) -> AlterPartitionRequest:
        now = self.partition(key)
        broker_id = now.leader if sender is None else sender
        item = AlterPartitionItem(
            key,
            now.leader_epoch if leader_epoch is None else leader_epoch,
            now.partition_epoch if partition_epoch is None else partition_epoch,
            isr,
            tuple(self.broker(one).broker_epoch for one in isr) if epochs is None else epochs,
            recovering=recovering,
        )
        known = self.image.brokers.get(broker_id)
        own_epoch = -1 if known is None else known.broker_epoch
        epoch = own_epoch if sender_epoch is None else sender_epoch
        return AlterPartitionRequest(0, broker_id, epoch, 3, (item,))


def registration(broker_id: int, incarnation_id: int = 1, **fields: Any) -> Any:
    return BrokerRegistrationRequest(
        **{
            "correlation": 0,
            "broker_id": broker_id,
            "incarnation_id": incarnation_id,
            "broker_epoch": -1,
            "current_metadata_offset": 0,
            "listeners": (("CLIENT", "localhost", 9092 + broker_id, 0),),
            "features": FEATURES,
            "rack": None,
            "cluster_id": CLUSTER,
            **fields,
        }
    )
