"""A cluster and clients in memory, and what drives them in a run."""

import random
from collections.abc import Callable, Collection
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import yaml
from fake_cluster import NODES, FakeCluster
from fake_wire import FakeWire
from sealed_runs import sealed_table

from fencepost.clusters.abilities import LinkEnd
from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.stage import Stage
from fencepost.harness.interpreter.books import PerformedPlay, Played
from fencepost.harness.interpreter.client_faults import ClientFaults
from fencepost.harness.interpreter.cutting import cutters_of
from fencepost.harness.interpreter.interpreter import Interpreter
from fencepost.harness.interpreter.network import Network
from fencepost.harness.interpreter.observer import Observer
from fencepost.harness.interpreter.performer import Performer
from fencepost.history.clock import Clock
from fencepost.history.journal import FaultJournal
from fencepost.history.run_directory import RunDirectory
from fencepost.nemesis.play import parse_play
from fencepost.nemesis.verbs.step import Play
from fencepost.nemesis.wire.rules import Flow, Link

STAGE = Stage(nodes=NODES, keys=("t-0",), broker_ids=(1, 2, 3))


LINKS = tuple(
    Link(source=source, target=target, address="127.101.1.1", port=1)
    for source, target in permutations(NODES, 2)
    if source != NODES[0]
)


def network_of(
    cluster: FakeCluster, wire: FakeWire | None, *, journal: FaultJournal, played: Played
) -> Network:
    network = Network(
        cluster,
        wire=wire,  # type: ignore[arg-type]  # a wire in memory
        cutters=cutters_of(cluster, wire=wire, links=LINKS),  # type: ignore[arg-type]
        journal=journal,
        played=played,
    )
    network.count_registrations()
    return network


class Bench:
    """A cluster in memory and everything that drives it."""

    def __init__(
        self,
        directory: Path,
        *,
        acknowledged: Callable[[], int] = lambda: 0,
        cluster: FakeCluster | None = None,
    ) -> None:
        self.run = RunDirectory(directory)
        self.run.raw.mkdir()
        self.cluster = cluster or FakeCluster()
        self.journal = FaultJournal(self.run.raw, Clock.start())
        self.wire = FakeWire()
        played = PerformedPlay(self.run.play_path)
        self.performer = Performer(self.cluster, journal=self.journal, played=played)
        self.network = network_of(self.cluster, self.wire, journal=self.journal, played=played)
        self.observer = Observer(self.cluster, acknowledged=acknowledged, wire=self.network.status)
        self.interpreter = Interpreter(
            cluster=self.cluster,
            performer=self.performer,
            network=self.network,
            clients=ClientFaults(None, journal=self.journal, played=played),
            played=played,
            observer=self.observer,
            draw=random.Random(1),
            on_tick=lambda _now_s, _now: None,
        )

    def performed(self) -> list[dict[str, object]]:
        found = yaml.safe_load(self.run.play_path.read_text())
        return [{key: step[key] for key in step if key != "at"} for step in found]

    def faults(self) -> pa.Table:
        self.journal.close()
        return sealed_table(self.run, "faults")


class PacketCluster(FakeCluster):
    """Its nodes have networks of their own, in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.dropped: dict[str, frozenset[Flow]] = {}
        self.rates: dict[NodeName, int] = {}

    def links(self) -> tuple[LinkEnd, ...]:
        return tuple(LinkEnd(source=one.source, target=one.target, port=1) for one in LINKS)

    def why_no_packets(self) -> str | None:
        return None

    def drop_packets(self, name: str, flows: Collection[Flow]) -> None:
        self.dropped[name] = frozenset(flows)

    def pass_packets(self, name: str) -> int:
        return len(self.dropped.pop(name))

    def reaches(self, source: NodeName, target: NodeName, *, timeout_s: float) -> bool:
        del timeout_s
        ways = {(source, target), (target, source)}
        return not any(ways & flows for flows in self.dropped.values())

    def answers(self, node: NodeName, *, timeout_s: float) -> bool:
        del timeout_s
        return self.states[node] is NodeState.RUNNING

    def limit_bandwidth(self, node: NodeName, *, bits_per_s: int) -> float:
        self.rates[node] = bits_per_s
        return float(bits_per_s)

    def free_bandwidth(self, node: NodeName) -> None:
        del self.rates[node]


def play(*steps: object) -> Play:
    return parse_play(list(steps), STAGE)


class FakeClients:
    """Two producers and a consumer, which do as they are told."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def named(self, role: str) -> tuple[str, ...]:
        return ("producer-0", "producer-1") if role == "producer" else ("consumer-0",)

    def pause(self, name: str) -> str:
        return self._say(f"pause {name}")

    def resume(self, name: str) -> str:
        return self._say(f"resume {name}")

    def crash(self, name: str) -> str:
        return self._say(f"crash {name}")

    def come_back(self, name: str) -> str:
        return self._say(f"back {name}")

    def _say(self, call: str) -> str:
        self.calls.append(call)
        return call
