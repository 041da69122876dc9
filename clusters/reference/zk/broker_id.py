"""The id of a broker (H01 to H04), and the entry of its host (H02).

An id of the configuration or of the disk is used as it is: if it cannot be registered, that is an
error for a person. Without either, ids are tried one after the other until one can be registered:

- step a: the id that ZooKeeper keeps for this host;
- step b, where it is adopted: the id that topics name and no broker has registered. Several are an
  error, for any of them may be of a broker that is only restarting;
- a new one, from the sequence.

An id that was taken meanwhile leads on: from step a to b, from b to b again, which then finds other
ids missing.

Source: the draft "Broker id by host name"; Kafka's `KafkaServer.getOrGenerateBrokerId`.
"""

from collections.abc import Callable
from enum import Enum, auto

from clusters.node_port.effects import Effects
from clusters.node_port.zookeeper import Create, GetChildren, GetData, Operation, SetData, ZkError
from clusters.reference.zk.asking import ZkAnswer
from clusters.reference.zk.situation import ZkSituation
from clusters.reference.zk.znodes import (
    BROKER_IDS,
    BROKER_SEQUENCE,
    TOPICS,
    TopicInfo,
    decoded_host,
    encoded_host,
    host_path,
    topic_path,
)

__all__ = ["BrokerIds"]


class _Step(Enum):
    """The source of the id that is being tried."""

    GIVEN = auto()
    HOST = auto()
    MISSING = auto()
    NEW = auto()


class BrokerIds:
    """A broker's search for its id, and the entry of its host."""

    __slots__ = ("_attempt", "_failed", "_situation", "_step", "_topic_ids", "_unread")

    def __init__(
        self,
        situation: ZkSituation,
        *,
        attempt: Callable[[int, int, Effects], None],
        failed: Callable[[str, Effects], None],
    ) -> None:
        """Create it. `attempt`: (now, broker id, effects), registers; `failed`: (why, effects)."""
        self._situation = situation
        self._attempt = attempt
        self._failed = failed
        self._step = _Step.GIVEN
        self._topic_ids: set[int] = set()
        self._unread = 0

    def begin(self, now: int, disk_id: int | None, effects: Effects) -> None:
        """Find an id to try. `disk_id`: the one that the disk is formatted for, if any."""
        configured, rules = self._situation.configuration.node_id, self._situation.rules
        # Rule id_sources_agree.
        disagree = configured >= 0 and disk_id not in (None, configured)
        if disagree and rules.id_sources_agree:
            self._failed(f"broker.id is {configured}, and the disk is of broker {disk_id}", effects)
            return
        # Rule id_of_disk_before_zookeeper.
        of_disk = disk_id if rules.id_of_disk_before_zookeeper else None
        given = configured if configured >= 0 else of_disk
        if given is not None:
            self._try(now, _Step.GIVEN, given, effects)
        elif rules.host_keeps_its_id:
            # Rule host_keeps_its_id.
            self._ask(GetData(host_path(self._host)), self._host_read, effects)
        else:
            self._look_for_missing(effects)

    def taken(self, broker_id: int, effects: Effects) -> None:
        """Go on: another broker has registered the id that was tried."""
        if self._step is _Step.GIVEN:
            self._failed(f"another broker has registered id {broker_id}", effects)
        elif self._step is _Step.NEW:
            self._ask(SetData(BROKER_SEQUENCE, b""), self._numbered, effects)
        else:
            self._look_for_missing(effects)

    def registered(self, effects: Effects) -> None:
        """Write the broker's id under its host's name."""
        # Rule host_mapping_written.
        if self._host and self._situation.rules.host_mapping_written:
            self._ask(SetData(host_path(self._host), self._content()), self._written, effects)

    @property
    def _host(self) -> str:
        return self._situation.zk_configuration.host_name

    def _content(self) -> bytes:
        return encoded_host(self._situation.node_id)

    def _ask(
        self,
        operation: Operation,
        then: Callable[[int, ZkAnswer, Effects], None],
        effects: Effects,
    ) -> None:
        self._situation.asking.ask((operation,), then, effects)

    def _try(self, now: int, step: _Step, broker_id: int, effects: Effects) -> None:
        self._step = step
        self._attempt(now, broker_id, effects)

    def _host_read(self, now: int, answer: ZkAnswer, effects: Effects) -> None:
        if answer.response.error == ZkError.OK:
            kept = decoded_host(answer.response.outcomes[0].data)
            self._try(now, _Step.HOST, kept, effects)
        elif answer.response.error != ZkError.SESSION_EXPIRED:
            self._look_for_missing(effects)

    def _look_for_missing(self, effects: Effects) -> None:
        if self._situation.zk_configuration.adopts_missing_ids:
            self._topic_ids.clear()
            self._ask(GetChildren(TOPICS), self._topics_listed, effects)
        else:
            self._ask(SetData(BROKER_SEQUENCE, b""), self._numbered, effects)

    def _topics_listed(self, now: int, answer: ZkAnswer, effects: Effects) -> None:
        if answer.response.error != ZkError.OK:
            return
        topics = answer.response.outcomes[0].children
        self._unread = len(topics)
        for topic in topics:
            self._ask(GetData(topic_path(topic)), self._topic_read, effects)
        if not topics:
            self._topics_known(now, effects)

    def _topic_read(self, now: int, answer: ZkAnswer, effects: Effects) -> None:
        if answer.response.error == ZkError.SESSION_EXPIRED:
            return
        if answer.response.error == ZkError.OK:  # Else it was deleted meanwhile.
            info = TopicInfo.decoded(answer.response.outcomes[0].data)
            self._topic_ids.update(*info.replicas.values())
        self._unread -= 1
        if not self._unread:
            self._topics_known(now, effects)

    def _topics_known(self, _now: int, effects: Effects) -> None:
        self._ask(GetChildren(BROKER_IDS), self._ids_listed, effects)

    def _ids_listed(self, now: int, answer: ZkAnswer, effects: Effects) -> None:
        if answer.response.error != ZkError.OK:
            return
        live = {int(name) for name in answer.response.outcomes[0].children}
        missing = sorted(self._topic_ids - live)
        if not missing:
            self._ask(SetData(BROKER_SEQUENCE, b""), self._numbered, effects)
        elif len(missing) == 1 or not self._situation.rules.one_missing_id_alone:
            # Rule one_missing_id_alone.
            self._try(now, _Step.MISSING, missing[0], effects)
        else:
            listed = ", ".join(map(str, missing))
            self._failed(f"ids {listed} are missing, and any may be of a broker to come", effects)

    def _numbered(self, now: int, answer: ZkAnswer, effects: Effects) -> None:
        stat = answer.response.outcomes[0].stat if answer.response.error == ZkError.OK else None
        if stat is not None:
            above = self._situation.zk_configuration.reserved_broker_id_max
            self._try(now, _Step.NEW, above + stat.version, effects)

    def _written(self, _now: int, answer: ZkAnswer, effects: Effects) -> None:
        if answer.response.error == ZkError.NO_NODE:
            self._ask(Create(host_path(self._host), self._content()), self._created, effects)

    def _created(self, _now: int, answer: ZkAnswer, effects: Effects) -> None:
        if answer.response.error == ZkError.NODE_EXISTS:
            self.registered(effects)
