"""A broker's session with ZooKeeper, and its registration there.

The registration is an ephemeral znode. It is made anew with each session, and its czxid is the
incarnation id (Z01). A broker whose id is configured or on its disk waits while the znode is
another session's, which may be that of its own predecessor; when it has waited for
`registration_timeout_ns` it ends. The first broker of a cluster makes the permanent znodes.
"""

from typing import Final, Protocol

from clusters.node_port.effects import SEND, WRITE, Effects
from clusters.node_port.storage import META_PROPERTIES, MetaProperties
from clusters.node_port.zookeeper import (
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
)
from clusters.reference.nodes.configuration import MS
from clusters.reference.zk.asking import ZkAnswer
from clusters.reference.zk.broker_id import BrokerIds
from clusters.reference.zk.situation import ZkSituation, incarnation_of
from clusters.reference.zk.znodes import (
    BROKER_IDS,
    PERMANENT,
    BrokerInfo,
    broker_path,
)

__all__ = ["RegistrationPort", "ZkRegistration"]

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
        self._ids = BrokerIds(situation, attempt=self._attempt, failed=port.refused)
        self._disk_id: int | None = None
        self._has_znodes = False
        self._is_fixed = False
        """True if the id was configured or on the disk, or has been registered once."""
        self._candidate = -1
        """The id that it is being registered under."""
        self._session_id = 0
        self._given_up_ns = 0
        """The time when it has waited for long enough for its id; 0: it does not wait."""
        situation.asking.on_session(self._session_changed)
        situation.asking.on_watch(f"{BROKER_IDS}/", self._gone)

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
            self._make_znodes(now, effects)

    def _make_znodes(self, now: int, effects: Effects) -> None:
        if self._has_znodes:
            self._begin(now, effects)
            return
        for path in PERMANENT[:-1]:
            self._situation.asking.ask((Create(path, b""),), _ignored, effects)
        self._situation.asking.ask((Create(PERMANENT[-1], b""),), self._znodes_made, effects)

    def _znodes_made(self, now: int, answer: ZkAnswer, effects: Effects) -> None:
        if answer.response.error in (0, _EXISTS):
            self._has_znodes = True
            self._begin(now, effects)

    def _begin(self, now: int, effects: Effects) -> None:
        if self._situation.broker_epoch >= 0:
            self._attempt(now, self._situation.node_id, effects)
        else:
            self._ids.begin(now, self._disk_id, effects)

    def _attempt(self, _now: int, broker_id: int, effects: Effects) -> None:
        """Register under this id, if nothing is registered under it."""
        self._candidate = broker_id
        configuration = self._situation.zk_configuration
        version = _READY if self._situation.speaks_heartbeats else _LEGACY
        info = BrokerInfo(
            broker_id,
            configuration.listeners,
            configuration.rack,
            version,
            configuration.host_name,
        )
        create = Create(broker_path(broker_id), info.encoded(), ephemeral=True)
        self._situation.asking.ask((create,), self._tried, effects)

    def _tried(self, now: int, answer: ZkAnswer, effects: Effects) -> None:
        response = answer.response
        if response.error == _EXISTS:
            exists = Exists(broker_path(self._candidate), watch=True)
            self._situation.asking.ask((exists,), self._looked, effects)
        elif not response.error:
            self._done(now, response.outcomes[0].stat, effects)

    def _looked(self, now: int, answer: ZkAnswer, effects: Effects) -> None:
        """Tell this session's own znode, whose answer was lost, from another's."""
        response = answer.response
        if response.error == _NO_NODE:
            self._attempt(now, self._candidate, effects)
            return
        stat = response.outcomes[0].stat if not response.error else None
        if stat is None:
            return
        if stat.ephemeral_owner == self._session_id:
            self._done(now, stat, effects)
        elif not self._is_fixed:
            self._ids.taken(self._candidate, effects)
        elif not self._given_up_ns:
            timeout_ns = self._situation.configuration.registration_timeout_ns
            self._given_up_ns = now + timeout_ns
            self._situation.alarm.by(self._given_up_ns)

    def _gone(self, now: int, event: WatchEvent, effects: Effects) -> None:
        """The znode has changed that this broker waits for."""
        if self._given_up_ns and event.path == broker_path(self._candidate):
            self._attempt(now, self._candidate, effects)

    def _done(self, now: int, stat: Stat | None, effects: Effects) -> None:
        assert stat is not None, self._candidate
        situation = self._situation
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
        effects.append((WRITE, META_PROPERTIES, meta))
        self._ids.registered(effects)
        self._port.registered(now, effects)


def _ignored(_now: int, _answer: ZkAnswer, _effects: Effects) -> None:
    """Take the answer to the creation of what may be there already."""
