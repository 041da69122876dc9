"""Faults without mercy: nobody waits for the cluster to recover, and no budget spares a majority.

A mix leaves the cluster able to serve, so that clients see much; chaos looks for the schedules that
no mix would draw: the second fault while the first one is being mended, a voter without power just
after its vote, everybody down at once. What it loses by design (the only disk that had a record)
has to be excused by whoever judges the run.

A *spell* is a stretch of time with one idea of what goes wrong, so that faults that belong together
come together: only controllers, only the replicas of one key, only the network, or anything. Like a
mix it is a pure state machine: time and scene are arguments, and what it returns are steps.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from clusters.port import NodeName, Role, role_of
from nemesis.mix_network import drawn_partition
from nemesis.steps import Act, HealPartition, Partition, Step, Word
from nemesis.targets import NamedNodes, Scene
from nemesis.topology import Flows

__all__ = ["Chaos"]

_SPELL_S: Final = (0.5, 3.0)
_GAPS_S: Final = (0.03, 0.1, 0.3, 0.8)
"""Mean times between two steps; one is drawn for each spell."""
_PARTITIONS_MAX: Final = 2
_STRIKES: Final = {
    "crash": (Word.KILL, Word.KILL, Word.CUT_POWER),
    "power": (Word.CUT_POWER,),
    "freeze": (Word.PAUSE,),
    "any": (Word.KILL, Word.CUT_POWER, Word.PAUSE, Word.STOP),
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
    _strikes: tuple[Word, ...] = ()
    _mends: float = 0.6
    _cuts: float = 0.2
    _down: dict[NodeName, Word] = field(default_factory=dict)
    """Who is broken, and by what."""
    _cut: list[str] = field(default_factory=list)
    _count: int = 0

    def due(self, now_s: float, *, scene: Scene) -> tuple[Step, ...]:
        """The steps that are due at `now_s`."""
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
        word = self.draw.choice(self._strikes)
        if word is Word.CUT_POWER and role_of(node) is Role.BROKER:
            # Several brokers without power at once lose records by design: that is for few.
            word = Word.CUT_POWER if self.draw.random() < self.wipes else Word.KILL
        found: list[Step] = [_act(word, node)]
        if word is Word.STOP:
            # It takes its leave, and comes back at once: a rolling restart.
            return [*found, _act(Word.START, node)]
        self._down[node] = word
        wiped = word is Word.KILL and role_of(node) is Role.BROKER
        if wiped and self.draw.random() < self.wipes:
            target = NamedNodes(nodes=(node,))
            found.append(Act(word=Word.WIPE, target=target, keep_directory_id=True))
        return found

    def _mend(self, node: NodeName) -> Act:
        word = self._down.pop(node)
        return _act(Word.RESUME if word is Word.PAUSE else Word.START, node)

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
        return [drawn_partition(name, scene, self.draw)[0]]


def _act(word: Word, node: NodeName) -> Act:
    return Act(word=word, target=NamedNodes(nodes=(node,)))
