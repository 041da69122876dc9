"""Random faults from a seed, within a budget: a state machine that says which acts are due.

An *episode* is one fault from its first act to the act that heals it. The mix begins one when
the gap since the last one has passed, the budget allows another node down, and the cluster has
recovered (with `overlap`, only the budget counts). It never looks at a clock: time and the state of
the cluster are arguments, every choice is drawn from the random stream it was given.

Budget: a node counts as down from the first act of its episode until the cluster shows it whole
again (process running, broker unfenced and back in the ISR of all its partitions). Faults that
destroy data (wipe, rollback, cut_power and the like) begin only when everything has recovered: with
every replica in sync one lost disk costs no acknowledged record, with one in sync it would, by
design.

Demands: the kinds that the scenario demands (`require: {faults: […]}`) come first, each once, in
an order that is drawn.

Rounds: drawn with equal chance, a short run misses many of twenty kinds, or meets nothing but the
controller. In `rounds` each kind comes once before any comes again, and so does each target. A kind
that cannot begin just now keeps its turn for `_PATIENCE` draws in a row: some kinds never can begin
(where no node of a role may be down), and they must not stop the rest.
"""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from clusters.port import NodeName, role_name
from nemesis.targets import ByRole, Choice, RoleOf, Scene, Share, Target
from nemesis.verbs.episode import Begun, Opening
from nemesis.verbs.registry import EPISODES, is_fault
from nemesis.verbs.step import Breaking, Step

__all__ = ["Mix", "MixSpec"]

_PATIENCE: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class MixSpec:
    """The limits of a mix: possible faults, their frequency and duration, how many at a time."""

    faults: tuple[str, ...] = ("kill", "pause", "restart")
    targets: tuple[str, ...] = ("one broker", "leader", "active controller")
    """The targets, drawn with equal chance: `leader` and `isr follower` of a random partition, the
    `active controller`, or one|minority|majority|all nodes of a role.
    """
    gap_s: tuple[float, float] = (2.0, 5.0)
    """The time from the recovery after one fault to the next one (with overlap: from begin to
    begin).
    """
    duration_s: tuple[float, float] = (3.0, 8.0)
    down: Mapping[str, int] = field(default_factory=dict)
    """The number of nodes of a role that may be down at once, by the role's name; 1 for a role that
    is not here.
    """
    overlap: bool = False
    rounds: bool = False
    """Each kind of fault comes once before any comes again, and so does each target."""
    demanded: tuple[str, ...] = ()
    """The kinds without which the run proves nothing: each comes once before any other."""

    def down_max(self, role: str) -> int:
        """Return how many nodes of the role may be down at once."""
        return self.down.get(role, 1)


@dataclass(slots=True, kw_only=True)
class _Episode:
    nodes: tuple[NodeName, ...]
    due: list[tuple[float, Step]]
    destructive: bool


@dataclass(slots=True)
class Mix:
    """The random nemesis. Ask `due` every now and then; perform what it returns, in order."""

    spec: MixSpec
    draw: random.Random
    keys: tuple[str, ...]
    _next_at_s: float | None = None
    _episodes: list[_Episode] = field(default_factory=list)
    _count: int = 0
    _demanded: list[str] = field(init=False)
    """Demanded kinds that have not come yet."""
    _to_come: list[str] = field(default_factory=list)
    """Kinds still to come in this round."""
    _targets: list[str] = field(default_factory=list)
    """Targets still to come in this round, the next one last."""
    _in_vain: int = 0

    def __post_init__(self) -> None:
        """Begin with all the kinds that are demanded."""
        self._demanded = list(self.spec.demanded)

    def due(self, now_s: float, *, scene: Scene, impaired: frozenset[NodeName]) -> tuple[Step, ...]:
        """Return the acts that are due at `now_s`.

        `impaired` are the nodes that are not whole, whatever the reason; nodes of an episode under
        way always count.
        """
        acts = self._take_due(now_s, impaired)
        if self._may_begin(now_s, impaired):
            self._begin(now_s, scene, impaired)
            acts += self._take_due(now_s, impaired)
        return tuple(acts)

    def _take_due(self, now_s: float, impaired: frozenset[NodeName]) -> list[Step]:
        self._give_up_unsafe(impaired)
        acts: list[Step] = []
        for episode in self._episodes:
            while episode.due and episode.due[0][0] <= now_s:
                acts.append(episode.due.pop(0)[1])
        before = len(self._episodes)
        self._episodes = [episode for episode in self._episodes if episode.due]
        if len(self._episodes) < before and not self.spec.overlap:
            self._next_at_s = None  # the next gap begins once the cluster has recovered
        return acts

    def _give_up_unsafe(self, impaired: frozenset[NodeName]) -> None:
        """Forget a lost disk that is still to come if something else broke meanwhile."""
        for episode in self._episodes:
            to_come = any(is_fault(step) for _, step in episode.due)
            if episode.destructive and to_come and impaired:
                episode.due.clear()

    def _may_begin(self, now_s: float, impaired: frozenset[NodeName]) -> bool:
        if any(episode.destructive for episode in self._episodes):
            return False
        if not self.spec.overlap and (self._episodes or impaired):
            return False
        if self._next_at_s is None:
            self._next_at_s = now_s + self.draw.uniform(*self.spec.gap_s)
        return now_s >= self._next_at_s

    def _begin(self, now_s: float, scene: Scene, impaired: frozenset[NodeName]) -> None:
        self._next_at_s = now_s + self.draw.uniform(*self.spec.gap_s)
        kind, begun = self._drawn_kind(), self._count
        self._begin_one(kind, now_s, scene, impaired)
        self._note_draw(kind, begun=self._count > begun)

    def _drawn_kind(self) -> str:
        if self._demanded:
            return self.draw.choice(self._demanded)
        if not self._to_come or not self.spec.rounds:
            self._to_come = list(self.spec.faults)
        return self.draw.choice(self._to_come)

    def _note_draw(self, kind: str, *, begun: bool) -> None:
        self._in_vain = 0 if begun else self._in_vain + 1
        coming = self._demanded or self._to_come
        if begun:
            coming.remove(kind)
        elif self._in_vain >= _PATIENCE:
            coming.clear()
            self._in_vain = 0

    def _begin_one(
        self, kind: str, now_s: float, scene: Scene, impaired: frozenset[NodeName]
    ) -> None:
        episode = EPISODES[kind]
        busy = impaired | {node for one in self._episodes for node in one.nodes}
        if episode.destructive and busy:
            return
        begun = episode.begin(self._draft(now_s, scene, busy))
        if begun is not None:
            self._count += 1
            self._enter(kind, begun, destructive=episode.destructive)

    def _draft(self, now_s: float, scene: Scene, busy: frozenset[NodeName]) -> Opening:
        return Opening(
            name=f"mix-{self._count + 1}",
            now_s=now_s,
            scene=scene,
            draw=self.draw,
            duration_s=self.spec.duration_s,
            gap_s=self.spec.gap_s,
            target=self._target,
            free=lambda wanted: self._within_budget(wanted, busy),
            roles=[role for role in set(map(role_name, scene.nodes)) if self.spec.down_max(role)],
            busy=busy,
        )

    def _enter(self, kind: str, begun: Begun, *, destructive: bool) -> None:
        """Have an episode begin. Its steps say of which kind they are."""
        due = [(at_s, _of_kind(step, kind)) for at_s, step in begun.due]
        self._episodes.append(_Episode(nodes=begun.nodes, due=due, destructive=destructive))

    def _target(self) -> Target:
        word = self._drawn_target()
        if word in ("leader", "isr follower"):
            return ByRole(role=RoleOf(f"{word} of"), key=self.draw.choice(self.keys))
        if word == RoleOf.ACTIVE_CONTROLLER:
            return ByRole(role=RoleOf.ACTIVE_CONTROLLER)
        share, role = word.split()[0], word.split()[-1].removesuffix("s")
        return Choice(share=Share(share), role=role)

    def _drawn_target(self) -> str:
        if not self.spec.rounds:
            return self.draw.choice(self.spec.targets)
        if not self._targets:
            self._targets = self.draw.sample(self.spec.targets, len(self.spec.targets))
        return self._targets.pop()

    def _within_budget(
        self, wanted: tuple[NodeName, ...], busy: frozenset[NodeName]
    ) -> tuple[NodeName, ...]:
        kept = []
        used = Counter(map(role_name, busy))
        for node in wanted:
            role = role_name(node)
            if node not in busy and used[role] < self.spec.down_max(role):
                used[role] += 1
                kept.append(node)
        return tuple(kept)


def _of_kind(step: Step, kind: str) -> Step:
    return replace(step, kind=kind) if isinstance(step, Breaking) else step
