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

from enum import Enum, auto

from fencepost.clusters.node_port.zookeeper import Create, GetChildren, GetData, SetData, ZkError
from fencepost.clusters.reference.zk.situation import ZkSituation
from fencepost.clusters.reference.zk.znodes import (
    BROKER_IDS,
    BROKER_SEQUENCE,
    TOPICS,
    TopicInfo,
    decoded_host,
    encoded_host,
    host_path,
    topic_path,
)


class NoBrokerIdError(Exception):
    """There is no id that the broker may have; the message says why."""


class _Step(Enum):
    """The source of the id that is being tried."""

    GIVEN = auto()
    HOST = auto()
    MISSING = auto()
    NEW = auto()


class BrokerIds:
    """A broker's search for its id, and the entry of its host."""

    __slots__ = ("_situation", "_step", "_zookeeper")

    def __init__(self, situation: ZkSituation) -> None:
        self._situation = situation
        self._zookeeper = situation.zookeeper
        self._step = _Step.GIVEN

    async def first(self, disk_id: int | None) -> int:
        """Return the id to try first. `disk_id`: the one that the disk is formatted for, if any.

        Raise NoBrokerIdError, here and in `next`, if the broker can have no id.
        """
        configured, rules = self._situation.configuration.node_id, self._situation.rules
        # Rule id_sources_agree.
        disagree = configured >= 0 and disk_id not in (None, configured)
        if disagree and rules.id_sources_agree:
            words = f"broker.id is {configured}, and the disk is of broker {disk_id}"
            raise NoBrokerIdError(words)
        # Rule id_of_disk_before_zookeeper.
        of_disk = disk_id if rules.id_of_disk_before_zookeeper else None
        given = configured if configured >= 0 else of_disk
        if given is not None:
            self._step = _Step.GIVEN
            return given
        # Rule host_keeps_its_id.
        if rules.host_keeps_its_id:
            kept = await self._zookeeper.answer(GetData(host_path(self._host)))
            if not kept.error:
                self._step = _Step.HOST
                return decoded_host(kept.outcomes[0].data)
        return await self._missing_or_new()

    async def next(self, taken_id: int) -> int:
        """Return the id to try next: another broker has registered the one that was tried."""
        if self._step is _Step.GIVEN:
            raise NoBrokerIdError(f"another broker has registered id {taken_id}")
        if self._step is _Step.NEW:
            return await self._new()
        return await self._missing_or_new()

    async def keep(self) -> None:
        """Write the broker's id under its host's name."""
        # Rule host_mapping_written.
        if not self._host or not self._situation.rules.host_mapping_written:
            return
        path, content = host_path(self._host), encoded_host(self._situation.node_id)
        while (await self._zookeeper.answer(SetData(path, content))).error == ZkError.NO_NODE:
            made = await self._zookeeper.answer(Create(path, content))
            if made.error != ZkError.NODE_EXISTS:
                return

    @property
    def _host(self) -> str:
        return self._situation.zk_configuration.host_name

    async def _missing_or_new(self) -> int:
        if not self._situation.zk_configuration.adopts_missing_ids:
            return await self._new()
        (topics,) = await self._zookeeper.read([GetChildren(TOPICS)])
        found = await self._zookeeper.read([GetData(topic_path(one)) for one in topics.children])
        infos = [TopicInfo.decoded(one.data) for one in found if not one.error]
        named = {one for info in infos for replicas in info.replicas.values() for one in replicas}
        (live,) = await self._zookeeper.read([GetChildren(BROKER_IDS)])
        missing = sorted(named - {int(name) for name in live.children})
        if not missing:
            return await self._new()
        # Rule one_missing_id_alone.
        if len(missing) > 1 and self._situation.rules.one_missing_id_alone:
            listed = ", ".join(map(str, missing))
            raise NoBrokerIdError(
                f"ids {listed} have no broker; any may belong to one that starts later"
            )
        self._step = _Step.MISSING
        return missing[0]

    async def _new(self) -> int:
        answer = await self._zookeeper.answer(SetData(BROKER_SEQUENCE, b""))
        stat = answer.outcomes[0].stat
        assert stat is not None, answer
        self._step = _Step.NEW
        return self._situation.zk_configuration.reserved_broker_id_max + stat.version
