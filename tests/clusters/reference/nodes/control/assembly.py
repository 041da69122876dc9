"""Whole controllers in one process: their disks, a network without delay, and syncs on demand."""

from collections import deque
from typing import Any

from desk import CLUSTER

from clusters.node_port.effects import (
    ADVANCE,
    APPEND,
    CLOSE,
    EXIT,
    NOTE,
    SEND,
    START,
    STOP,
    SYNC,
    SYNCED,
    TICK,
    TICK_NS,
    TRUNCATE,
    WRITE,
    Effects,
)
from clusters.node_port.storage import META_PROPERTIES, Contents, MetaProperties
from clusters.reference.nodes.configuration import Configuration
from clusters.reference.nodes.controller import ControllerNode
from clusters.reference.nodes.image import MetadataImage
from clusters.reference.nodes.rules import Rules


class Assembly:
    """Controllers; everything but them asks as a source of its own."""

    def __init__(self, *ids: int, rules: Rules | None = None, **settings: Any) -> None:
        self.now = 0
        self.rules = Rules() if rules is None else rules
        self.settings: dict[str, Any] = {"cluster_id": CLUSTER, **settings}
        self.ids = ids
        self.nodes: dict[int, ControllerNode] = {}
        self.disks = {one: Contents() for one in ids}
        self.exits: dict[int, str] = {}
        self.answers: list[tuple[int, Any]] = []
        self.notes: list[tuple[Any, ...]] = []
        self.cut: set[int] = set()
        """Whom no message reaches, nor leaves."""
        self._inbox: deque[tuple[int, int, int, Any]] = deque()
        for one in ids:
            properties = MetaProperties(cluster_id=CLUSTER, node_id=one, directory_id=one)
            self.disks[one].files[META_PROPERTIES] = properties
            self.boot(one)

    def boot(self, node_id: int) -> None:
        """A process begins on its disk."""
        configuration = Configuration(
            node_id=node_id, is_controller=True, voters=self.ids, **self.settings
        )
        self.exits.pop(node_id, None)
        self.nodes[node_id] = ControllerNode(configuration, self.rules)
        self.disks[node_id].incarnation_id += 1
        self._inbox.append((node_id, node_id, START, self.disks[node_id]))
        self.drain()

    def stop(self, node_id: int) -> None:
        self._inbox.append((node_id, node_id, STOP, None))
        self.drain()

    def kill(self, node_id: int) -> None:
        """The process is gone, its disk stays as it is."""
        del self.nodes[node_id]

    def run(self, time_ns: int) -> None:
        for _ in range(time_ns // TICK_NS):
            self.now += TICK_NS
            self._inbox.extend((one, one, TICK, None) for one in self.nodes)
            self.drain()

    def ask(self, node_id: int, request: Any, source: int = -7) -> Any:
        """The answer that came without time passing; None: none did."""
        before = len(self.answers)
        self._inbox.append((node_id, source, request.kind, request))
        self.drain()
        found = [answer for asked, answer in self.answers[before:] if asked == source]
        return found[0] if found else None

    def active(self) -> int:
        """Who was the last to become active."""
        found: int = next(note[0] for note in reversed(self.notes) if note[1] == "active")
        return found

    def image(self, node_id: int) -> MetadataImage:
        return self.nodes[node_id]._replayer.image

    def drain(self) -> None:
        inbox = self._inbox
        for _ in range(100_000):
            if not inbox:
                return
            node_id, source, kind, message = inbox.popleft()
            node = self.nodes.get(node_id)
            if node is not None and node_id not in self.exits:
                effects: Effects = []
                node.handle(self.now, source, kind, message, effects)
                self._perform(node_id, effects)
        raise AssertionError("the controllers never come to rest")

    def _perform(self, node_id: int, effects: Effects) -> None:
        disk = self.disks[node_id]
        for effect in effects:
            match effect[0]:
                case _ if effect[0] == SEND:
                    self._send(node_id, effect[1], effect[2])
                case _ if effect[0] == SYNC:
                    self._inbox.append((node_id, node_id, SYNCED, effect[2]))
                case _ if effect[0] == APPEND:
                    disk.logs.setdefault(effect[1], []).append(effect[2])
                case _ if effect[0] == WRITE:
                    disk.files[effect[1]] = effect[2]
                case _ if effect[0] == TRUNCATE:
                    log = disk.logs.get(effect[1], [])
                    log[:] = [batch for batch in log if batch.end_offset <= effect[2]]
                case _ if effect[0] == ADVANCE:
                    log = disk.logs.get(effect[1], [])
                    log[:] = [batch for batch in log if batch.end_offset > effect[2]]
                    disk.log_starts[effect[1]] = effect[2]
                case _ if effect[0] == EXIT:
                    self.exits[node_id] = effect[1]
                case _ if effect[0] == CLOSE:
                    self.answers.append((effect[1], CLOSE))
                case _ if effect[0] == NOTE:
                    self.notes.append((node_id, *effect[1:]))

    def _send(self, node_id: int, target: int, message: Any) -> None:
        if target not in self.disks:
            self.answers.append((target, message))
        elif node_id not in self.cut and target not in self.cut:
            self._inbox.append((target, node_id, message.kind, message))
