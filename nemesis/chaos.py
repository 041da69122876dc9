"""Faults without mercy: no wait for the cluster to recover, and no budget that spares a majority.

A mix leaves the cluster able to serve, so that clients see much; chaos looks for the schedules that
no mix would draw: the second fault while the first one is being mended, a voter without power just
after its vote, every node down at once. The caller that judges the run has to excuse what chaos
loses by design (the only disk that had a record).

A *spell* is a stretch of time with one idea of what goes wrong, so that faults that belong together
come together: only controllers, only the replicas of one key, only the network, or anything. Like a
mix it is a pure state machine: time and scene are arguments, and it returns steps.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from clusters.kafka_port import Role, role_of
from clusters.port import NodeName
from nemesis.drawn_cuts import drawn_cut
from nemesis.targets import NamedNodes, Scene
from nemesis.topology import Flows
from nemesis.verbs.cut_power import CutPower
from nemesis.verbs.heal import HealPartition
from nemesis.verbs.kill import Kill
from nemesis.verbs.partition import Partition
from nemesis.verbs.pause import Pause, Resume
from nemesis.verbs.start import Start
from nemesis.verbs.step import OnNodes, Step
from nemesis.verbs.stop import ShutDown
from nemesis.verbs.wipe import Wipe

_SPELL_S: Final = (0.5, 3.0)
_GAPS_S: Final = (0.03, 0.1, 0.3, 0.8)
"""The mean times between two steps; one is drawn for each spell."""
_PARTITIONS_MAX: Final = 2
_STRIKES: Final[Mapping[str, tuple[type[OnNodes], ...]]] = {
    "crash": (Kill, Kill, CutPower),
    "power": (CutPower,),
    "freeze": (Pause,),
    "any": (Kill, CutPower, Pause, ShutDown),
}


@dataclass(slots=True)
class Chaos:
    """Ask `due` every now and then; perform what it returns, in order. It never heals at the end.

    `wipes`: the share of crashes of brokers that cost records: the disk is empty, or what was not
    synced is gone.
    """

    draw: random.Random
    nodes: Sequence[NodeName]
    wipes: float = 0.1
    _next_s: float = 0.0
    _spell_end_s: float = 0.0
    _gap_s: float = 0.3
    _among: tuple[NodeName, ...] = ()
    _strikes: tuple[type[OnNodes], ...] = ()
    _mends: float = 0.6
    _cuts: float = 0.2
    _down: dict[NodeName, type[OnNodes]] = field(default_factory=dict)
    """The broken nodes, each with the step that broke it."""
    _cut: list[str] = field(default_factory=list)
    _count: int = 0

    def due(self, now_s: float, *, scene: Scene) -> tuple[Step, ...]:
        """Return the steps that are due at `now_s`."""
        found: list[Step] = []
        while self._next_s <= now_s:
            if self._next_s >= self._spell_end_s:
                self._begin_spell(self._next_s)
            found += self._step(scene)
            self._next_s += self.draw.expovariate(1 / self._gap_s)
        return tuple(found)

    def _begin_spell(self, now_s: float) -> None:
        draw = self.draw
        self._spell_end_s = now_s + draw.uniform(*_SPELL_S)
        self._gap_s = draw.choice(_GAPS_S)
        self._mends = draw.choice((0.3, 0.5, 0.7))
        self._cuts = draw.choice((0.0, 0.1, 0.3, 0.8))
        self._strikes = _STRIKES[draw.choice(sorted(_STRIKES))]
        among = draw.choice(("controllers", "brokers", "two", "all"))
        if among == "two":
            self._among = tuple(draw.sample(list(self.nodes), 2))
        elif among == "all":
            self._among = tuple(self.nodes)
        else:
            role = Role(among.removesuffix("s"))
            self._among = tuple(node for node in self.nodes if role_of(node) is role)

    def _step(self, scene: Scene) -> list[Step]:
        draw = self.draw
        broken = [node for node in self._among if node in self._down]
        if draw.random() < self._cuts:
            return self._on_the_network(scene)
        if broken and (draw.random() < self._mends or len(broken) == len(self._among)):
            return [self._mend(draw.choice(broken))]
        whole = [node for node in self._among if node not in self._down]
        return self._strike(draw.choice(whole)) if whole else []

    def _strike(self, node: NodeName) -> list[Step]:
        strike, target = self.draw.choice(self._strikes), NamedNodes(nodes=(node,))
        if strike is CutPower and role_of(node) is Role.BROKER:
            # Several brokers without power at once lose records by design: that is for few.
            strike = CutPower if self.draw.random() < self.wipes else Kill
        found: list[Step] = [strike(target=target)]
        if strike is ShutDown:
            # It takes its leave, and comes back at once: a rolling restart.
            return [*found, Start(target=target)]
        self._down[node] = strike
        wiped = strike is Kill and role_of(node) is Role.BROKER
        if wiped and self.draw.random() < self.wipes:
            found.append(Wipe(target=target, keep_directory_id=True))
        return found

    def _mend(self, node: NodeName) -> Step:
        mend = Resume if self._down.pop(node) is Pause else Start
        return mend(target=NamedNodes(nodes=(node,)))

    def _on_the_network(self, scene: Scene) -> list[Step]:
        if self._cut and (len(self._cut) >= _PARTITIONS_MAX or self.draw.random() < self._mends):
            name = self._cut.pop(self.draw.randrange(len(self._cut)))
            return [HealPartition(name=name)]
        self._count += 1
        name = f"chaos-{self._count}"
        self._cut.append(name)
        if self.draw.random() < 0.4:  # noqa: PLR2004  # a single link, one way
            source, target = self.draw.sample(list(self.nodes), 2)
            return [Partition(name=name, cut=Flows(flows=frozenset({(source, target)})))]
        return [Partition(name=name, cut=drawn_cut(scene, self.draw)[0])]
