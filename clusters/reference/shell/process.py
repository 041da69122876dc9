"""A node as a process: one event loop around the core, which decides everything.

Every event is one step: the node takes it and says what is to be done, and all of that is done, in
its order, before the next step. Syncs run in a thread of their own, one after the other; a node is
told in their order. Logs are recovered in another one, so that the node takes events meanwhile, a
signal to end among them. Nothing here decides anything of the protocol.

The code of other roles and generations is not imported: several nodes start at once, and most of
the start is imports.
"""

import asyncio
import gc
import os
import secrets
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from fencepost.clusters.node_port.effects import (
    ADVANCE,
    APPEND,
    CLOSE,
    CREATE,
    DELETE,
    EXIT,
    EXTEND,
    NOTE,
    RECOVER,
    RECOVERED,
    SEND,
    START,
    STOP,
    SYNC,
    SYNCED,
    TICK,
    TICK_NS,
    TRUNCATE,
    UNREACHABLE,
    WRITE,
    Effects,
)
from fencepost.clusters.node_port.storage import META_PROPERTIES
from fencepost.clusters.node_port.zookeeper import ZOOKEEPER
from fencepost.clusters.reference.codec.api import ListenerType, Traffic
from fencepost.clusters.reference.codec.codec import Codec, kraft_apis
from fencepost.clusters.reference.codec.fetch_sessions import FetchSessions
from fencepost.clusters.reference.codec.metadata_log import SnapshotBytes
from fencepost.clusters.reference.codec.small_batches import CommitRecords
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.nodes.image import MetadataImage
from fencepost.clusters.reference.nodes.messages.quorum import FetchSnapshotRequest
from fencepost.clusters.reference.nodes.records import Listener
from fencepost.clusters.reference.shell.disk import DataDirectories
from fencepost.clusters.reference.shell.incoming import Connections
from fencepost.clusters.reference.shell.node_settings import ProcessSettings
from fencepost.clusters.reference.shell.outgoing import Address, OutgoingConnections, OutgoingPort
from fencepost.clusters.reference.shell.process_log import said_of, say
from fencepost.clusters.reference.shell.zookeeper import ZooKeeper
from fencepost.clusters.reference.zk.configuration import ZkConfiguration
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.history.failure import HarnessError

if TYPE_CHECKING:
    from fencepost.clusters.reference.codec.api import Api
    from fencepost.clusters.reference.nodes.broker import BrokerNode
    from fencepost.clusters.reference.nodes.combined import CombinedNode
    from fencepost.clusters.reference.nodes.controller import ControllerNode

_Handle = Callable[[int, int, int, Any, Effects], None]

_INCARNATION_BITS: Final = 128
_SELF: Final = -1
"""The source of a node's own events, which go nowhere else."""
_LAST_WORDS_S: Final = 0.2
"""The wait at the end, for what was sent and has not left the process yet."""
_NOTHING: Final = MetadataImage()
"""A controller's image, for its codec: it names topics by itself."""
_ANSWER_LATE_NS: Final = 1_000_000_000
"""The extra time after which the process gives up an answer, later than the node itself."""


def run(settings: ProcessSettings) -> str:
    """Run the node until it ends; why it did, empty for a clean end.

    Raises HarnessError if it cannot start: a port that is in use, a disk that cannot be read.
    """
    return asyncio.run(_Process(settings).run())


class _Process:
    """The shell of one node."""

    def __init__(self, settings: ProcessSettings) -> None:
        self._settings = settings
        self._disk = DataDirectories(
            settings.log_directories,
            metadata=settings.metadata_directory,
            voters=settings.configuration.voters,
            kept=settings.kept_directory,
        )
        contents = self._disk.contents(incarnation_id=secrets.randbits(_INCARNATION_BITS))
        meta = contents.files.get(META_PROPERTIES)
        self._contents = contents
        self._configuration = replace(
            settings.configuration, cluster_id="" if meta is None else meta.cluster_id
        )
        self._hosts = {} if settings.hosts_file is None else _hosts_in(settings.hosts_file)
        self._syncs = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sync")
        self._node = _node(self._configuration, settings)
        self._handle = self._node.handle
        node = self._node
        self._vote = getattr(node, "vote", node.handle)
        """Takes a request that came in at a controller's listener."""
        self._zookeeper = self._ensemble()
        self._ended: asyncio.Future[str]
        self._build_connections()
        self._perform: dict[int, Callable[[tuple[Any, ...]], None]] = {
            APPEND: lambda effect: self._disk.append(effect[1], effect[2]),
            EXTEND: lambda effect: self._disk.extend(effect[1], effect[2]),
            RECOVER: lambda _: self._recover(),
            SYNC: self._sync,
            TRUNCATE: lambda effect: self._disk.truncate(effect[1], effect[2]),
            WRITE: lambda effect: self._disk.write(effect[1], effect[2]),
            DELETE: lambda effect: self._disk.delete(effect[1]),
            CREATE: lambda effect: self._disk.create(effect[1], effect[2]),
            ADVANCE: lambda effect: self._disk.advance(effect[1], effect[2]),
            CLOSE: lambda effect: self._incoming.close(effect[1]),
            NOTE: _note,
        }

    async def run(self) -> str:
        """Run from the first event to the last."""
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        servers = [await self._listener(name, address) for name, address in self._bound()]
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: self._step(_SELF, STOP, None))
        try:
            self._step(_SELF, START, self._contents)
            del self._contents
            # Objects of the start live as long as the process: no collector needs to see them.
            gc.freeze()
            for server in servers:
                await server.start_serving()
            ticks = loop.create_task(self._tick())
            reason = await self._ended
            ticks.cancel()
        finally:
            for server in servers:
                server.close()
        self._incoming.close_all()
        self._outgoing.close()
        self._zookeeper.close()
        await asyncio.sleep(_LAST_WORDS_S)
        self._syncs.shutdown()
        self._disk.close()
        return reason

    def _build_connections(self) -> None:
        codec = Codec(
            apis=_apis(self._settings),
            image=self._image,
            wall_offset_ns=time.time_ns() - time.monotonic_ns(),
            sessions=FetchSessions(
                slots=self._configuration.fetch_sessions_max,
                seed=self._contents.incarnation_id,
                now_ns=time.monotonic_ns,
            ),
        )
        self._incoming = Connections(
            codec=codec,
            asked=self._asked,
            broken=lambda what: say("WARN", what),
        )
        self._outgoing = OutgoingConnections(
            OutgoingPort(
                codec=codec,
                client_id=self._client_id,
                address_of=self._address_of,
                answered=lambda node, response: self._step(node, response.kind, response),
                unreachable=lambda node, request: self._step(node, UNREACHABLE, request),
                now_ns=time.monotonic_ns,
                timeout_ns=self._timeout_ns,
                broken=lambda what: say("WARN", what),
            )
        )

    def _asked(self, door: ListenerType, source: int, request: Any) -> None:
        handle = self._vote if door is ListenerType.CONTROLLER else self._handle
        self._take(handle, source, request.kind, request)

    def _step(self, source: int, kind: int, message: Any) -> None:
        self._take(self._handle, source, kind, message)

    def _take(self, handle: _Handle, source: int, kind: int, message: Any) -> None:
        if self._ended.done():
            return
        effects: Effects = []
        try:
            handle(time.monotonic_ns(), source, kind, message, effects)
            for effect in effects:
                code = effect[0]
                if code == SEND:
                    self._send(effect[1], effect[2])
                elif code == EXIT:
                    self._ended.set_result(effect[1])
                    return
                else:
                    self._perform[code](effect)
        except Exception as error:  # noqa: BLE001 -- a broken node ends, and says why
            self._ended.set_exception(error)

    def _send(self, target: int, message: Any) -> None:
        if target < 0:
            self._incoming.answer(target, message)
        elif target == ZOOKEEPER:
            self._zookeeper.send(message)
        else:
            self._outgoing.send(target, message)

    def _sync(self, effect: tuple[Any, ...]) -> None:
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._syncs, self._disk.syncer(effect[1]))
        done.add_done_callback(lambda future: self._synced(future, effect[2]))

    def _synced(self, done: "asyncio.Future[None]", token: Any) -> None:
        if (error := done.exception()) is not None and not self._ended.done():
            self._ended.set_exception(error)
        else:
            self._step(_SELF, SYNCED, token)

    def _recover(self) -> None:
        read = self._disk.recovery(self._ended.done)
        reading = asyncio.get_running_loop().run_in_executor(None, read)
        reading.add_done_callback(self._recovered)

    def _recovered(self, reading: "asyncio.Future[list[Any]]") -> None:
        if self._ended.done():
            return
        if (error := reading.exception()) is not None:
            self._ended.set_exception(error)
        else:
            self._step(_SELF, RECOVERED, self._disk.recovered(reading.result()))

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            # A process that was stopped has missed its ticks; one is as good as many.
            due = max(due + TICK_NS / 1e9, loop.time())
            await asyncio.sleep(due - loop.time())
            self._step(_SELF, TICK, None)
            self._outgoing.look()
            self._zookeeper.look()

    async def _listener(self, name: str, address: Address) -> asyncio.Server:
        is_controllers = name == self._settings.controller_listener
        door = ListenerType.CONTROLLER if is_controllers else ListenerType.BROKER
        loop = asyncio.get_running_loop()
        try:
            return await loop.create_server(self._incoming.at(door), *address, start_serving=False)
        except OSError as error:
            host, port = address
            why = os.strerror(error.errno) if error.errno else str(error)
            raise HarnessError(f"listener {name}: cannot listen on {host}:{port}: {why}") from error

    def _bound(self) -> list[tuple[str, Address]]:
        return list(self._settings.bound.items())

    async def _address_of(self, node: int, traffic: str) -> Address | None:
        voter = self._settings.voters.get(node)
        if voter is not None and traffic != Traffic.REPLICATION:
            return self._resolved(voter)
        shown = self._image().brokers.get(node)
        listeners = await self._registered(node) if shown is None else shown.listeners
        wanted = self._settings.replication_listener
        return next(
            (self._resolved((host, port)) for name, host, port, _ in listeners if name == wanted),
            None,
        )

    async def _registered(self, broker: int) -> tuple[Listener, ...]:
        """Return the listeners of a broker that the metadata does not show, by its znode."""
        from fencepost.clusters.reference.zk.znodes import BrokerInfo, broker_path  # noqa: PLC0415

        data = await self._zookeeper.data(broker_path(broker))
        return () if data is None else BrokerInfo.decoded(broker, data).listeners

    def _resolved(self, address: Address) -> Address:
        return (self._hosts.get(address[0], address[0]), address[1])

    def _ensemble(self) -> ZooKeeper:
        servers = [self._resolved(one) for one in self._settings.zookeepers]
        return ZooKeeper(servers, told=lambda said: self._step(ZOOKEEPER, said.kind, said))

    def _image(self) -> MetadataImage:
        return _NOTHING if self._own_broker is None else self._own_broker.image

    @property
    def _own_broker(self) -> "BrokerNode[Any] | CombinedNode | None":
        """The node, if it is a broker, be it a controller, too."""
        if not self._settings.is_broker:
            return None
        return cast("BrokerNode[Any] | CombinedNode", self._node)

    def _client_id(self, traffic: str) -> str:
        """Return the name by which Kafka's nodes call themselves."""
        broker = self._own_broker
        own = self._configuration.node_id if broker is None else broker.situation.node_id
        return f"broker-{own}-fetcher-0" if traffic == Traffic.REPLICATION else str(own)

    def _timeout_ns(self, kind: int) -> int:
        own = self._configuration
        of_quorum = kind <= FetchSnapshotRequest.kind
        waited = own.quorum_request_timeout_ns if of_quorum else own.request_timeout_ns
        return waited + _ANSWER_LATE_NS


def _node(
    configuration: Configuration, settings: ProcessSettings
) -> "ControllerNode | BrokerNode[Any] | CombinedNode":
    rules = settings.rules
    if not settings.is_broker:
        from fencepost.clusters.reference.nodes.controller import ControllerNode  # noqa: PLC0415

        return ControllerNode(configuration, rules, snapshots=SnapshotBytes())
    codec = CommitRecords(lambda: time.time_ns() // 1_000_000)
    if configuration.is_controller:
        from fencepost.clusters.reference.nodes.combined import CombinedNode  # noqa: PLC0415

        return CombinedNode(configuration, rules, codec=codec, snapshots=SnapshotBytes())
    if isinstance(configuration, ZkConfiguration):
        from fencepost.clusters.reference.zk.broker import zk_broker  # noqa: PLC0415

        assert isinstance(rules, ZkRules)
        return zk_broker(configuration, rules, codec=codec)
    from fencepost.clusters.reference.nodes.quorum_broker import quorum_broker  # noqa: PLC0415

    return quorum_broker(configuration, rules, codec=codec, snapshots=SnapshotBytes())


def _apis(settings: ProcessSettings) -> "Sequence[Api]":
    """Return the APIs of the node's generation."""
    if settings.voters:
        return kraft_apis(settings.configuration.voters)
    from fencepost.clusters.reference.codec.zk_apis import ZK_APIS  # noqa: PLC0415

    return ZK_APIS


def _note(effect: tuple[Any, ...]) -> None:
    words = said_of(effect)
    if words:
        say("INFO", words)


def _hosts_in(path: Path) -> dict[str, str]:
    """Return addresses by name, of a file like /etc/hosts."""
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise HarnessError(f"{path}: {error.strerror}") from error
    found: dict[str, str] = {}
    for line in lines:
        address, *names = line.partition("#")[0].split() or [""]
        found.update(dict.fromkeys(names, address))
    return found
