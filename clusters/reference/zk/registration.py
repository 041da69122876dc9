"""A broker's session with ZooKeeper, and its registration there.

The registration is an ephemeral znode. It is made anew with each session, and its czxid is the
incarnation id (Z01). A broker whose id is configured or on its disk waits while the znode is
another session's, which may be that of its own predecessor; when it has waited for
`registration_timeout_ns` it ends. The first broker of a cluster makes the permanent znodes.
"""

from typing import Final, Protocol

from fencepost.clusters.node_port.effects import SEND, WRITE, Effects
from fencepost.clusters.node_port.storage import META_PROPERTIES, MetaProperties
from fencepost.clusters.node_port.zookeeper import (
    ZOOKEEPER,
    CloseSession,
    Create,
    Exists,
    OpenSession,
    SessionEvent,
    SessionState,
    Stat,
    WatchEvent,
    ZkError,
    ZkResponse,
)
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.zk.broker_id import BrokerIds, NoBrokerIdError
from fencepost.clusters.reference.zk.situation import ZkSituation, incarnation_of
from fencepost.clusters.reference.zk.znodes import (
    BROKER_IDS,
    PERMANENT,
    BrokerInfo,
    broker_path,
)

_EXISTS: Final = int(ZkError.NODE_EXISTS)
_NO_NODE: Final = int(ZkError.NO_NODE)
_READY: Final = 5
_LEGACY: Final = 4
"""The versions of BrokerInfo (Z12)."""


class RegistrationPort(Protocol):
    """The rest of the broker."""

    def registered(self, now: int, effects: Effects) -> None:
        """It is registered; the situation has its id and its broker epoch."""

    def session_lost(self, now: int, effects: Effects) -> None:
        """Its session has expired, and its registration is gone."""

    def refused(self, why: str, effects: Effects) -> None:
        """There is no id for it, or another process has it."""


class ZkRegistration:
    """A broker's registration."""

    __slots__ = (
        "_candidate",
        "_disk_id",
        "_given_up_ns",
        "_has_znodes",
        "_ids",
        "_is_fixed",
        "_port",
        "_session_id",
        "_situation",
    )

    def __init__(self, situation: ZkSituation, port: RegistrationPort) -> None:
        self._situation = situation
        self._port = port
        self._ids = BrokerIds(situation)
        self._disk_id: int | None = None
        self._has_znodes = False
        self._is_fixed = False
        """True if the id was configured or on the disk, or has been registered once."""
        self._candidate = -1
        """The id that it is being registered under."""
        self._session_id = 0
        self._given_up_ns = 0
        """The time when it has waited for long enough for its id; 0: it does not wait."""
        situation.zookeeper.on_session(self._session_changed)
        situation.zookeeper.on_watch(f"{BROKER_IDS}/", self._gone)

    def start(self, disk_id: int | None, effects: Effects) -> None:
        """Begin. `disk_id`: the broker id on the disk, if there is one."""
        self._disk_id = disk_id
        of_disk = self._situation.rules.id_of_disk_before_zookeeper and disk_id is not None
        self._is_fixed = self._situation.configuration.node_id >= 0 or of_disk
        self._open(effects)

    def close(self, effects: Effects) -> None:
        """Give the registration back at once."""
        effects.append((SEND, ZOOKEEPER, CloseSession(-1)))

    def tick(self, now: int, effects: Effects) -> None:
        """Look whether it has waited for too long."""
        if not self._given_up_ns:
            return
        if now >= self._given_up_ns:
            self._given_up_ns = 0
            why = f"another process is registered under broker id {self._candidate}"
            self._port.refused(why, effects)
        else:
            self._situation.alarm.by(self._given_up_ns)

    def _open(self, effects: Effects) -> None:
        timeout_ms = self._situation.zk_configuration.session_timeout_ns // MS
        effects.append((SEND, ZOOKEEPER, OpenSession(-1, timeout_ms)))

    def _session_changed(self, now: int, event: SessionEvent, effects: Effects) -> None:
        if event.state is SessionState.EXPIRED:
            self._session_id = 0
            self._port.session_lost(now, effects)
            self._open(effects)
        elif event.state is SessionState.CONNECTED and event.session_id != self._session_id:
            self._session_id = event.session_id
            self._situation.zookeeper.coroutines.run(now, self._register(), effects)

    async def _register(self) -> None:
        """Register in a new session: under the id that the broker has, or the first one to be had.

        An id is tried until it is registered, or is waited for.
        """
        situation = self._situation
        if not self._has_znodes:
            made = await situation.zookeeper.answers([(Create(path, b""),) for path in PERMANENT])
            if made[-1].error not in (0, _EXISTS):
                return
            self._has_znodes = True
        if situation.broker_epoch >= 0:
            await self._attempt(situation.node_id)
            return
        try:
            broker_id = await self._ids.first(self._disk_id)
            while await self._attempt(broker_id):
                broker_id = await self._ids.next(broker_id)
        except NoBrokerIdError as error:
            self._port.refused(str(error), situation.zookeeper.coroutines.effects)

    async def _attempt(self, broker_id: int) -> bool:
        """Register under this id if nothing is; return whether another one is to be tried."""
        zookeeper, path = self._situation.zookeeper, broker_path(broker_id)
        self._candidate = broker_id
        create = Create(path, self._info(broker_id).encoded(), ephemeral=True)
        response = await zookeeper.answer(create)
        while response.error == _EXISTS:
            found = await zookeeper.answer(Exists(path, watch=True))
            if found.error != _NO_NODE:
                return self._looked(found)
            response = await zookeeper.answer(create)
        if not response.error:
            self._done(response.outcomes[0].stat)
        return False

    def _info(self, broker_id: int) -> BrokerInfo:
        configuration = self._situation.zk_configuration
        return BrokerInfo(
            broker_id,
            configuration.listeners,
            configuration.rack,
            _READY if self._situation.speaks_heartbeats else _LEGACY,
            configuration.host_name,
        )

    def _looked(self, found: ZkResponse) -> bool:
        """Tell this session's own znode, whose answer was lost, from another's.

        Return whether to try another id.
        """
        stat = found.outcomes[0].stat if not found.error else None
        if stat is None:
            return False
        if stat.ephemeral_owner == self._session_id:
            self._done(stat)
        elif not self._is_fixed:
            return True
        elif not self._given_up_ns:
            timeout_ns = self._situation.configuration.registration_timeout_ns
            self._given_up_ns = self._situation.zookeeper.coroutines.now + timeout_ns
            self._situation.alarm.by(self._given_up_ns)
        return False

    def _gone(self, now: int, event: WatchEvent, effects: Effects) -> None:
        """The znode has changed that this broker waits for."""
        if self._given_up_ns and event.path == broker_path(self._candidate):
            self._situation.zookeeper.coroutines.run(now, self._attempt(self._candidate), effects)

    def _done(self, stat: Stat | None) -> None:
        assert stat is not None, self._candidate
        situation, coroutines = self._situation, self._situation.zookeeper.coroutines
        self._given_up_ns = 0
        self._is_fixed = True
        situation.node_id = self._candidate
        situation.broker_epoch = incarnation_of(stat, situation.rules)
        meta = MetaProperties(
            cluster_id=situation.configuration.cluster_id,
            node_id=situation.node_id,
            directory_id=0,
            mode="",
        )
        coroutines.effects.append((WRITE, META_PROPERTIES, meta))
        coroutines.spawn(self._ids.keep())
        self._port.registered(coroutines.now, coroutines.effects)
