"""Random faults from a seed, within a budget: a state machine that says which acts are due.

An *episode* is one fault from its first act to the act that heals it. The mix begins one when
the gap since the last one has passed, the budget allows another node down, and the cluster has
recovered (with `overlap`, only the budget counts). It never looks at a clock: time and the state of
the cluster are arguments, every choice is drawn from the random stream it was given.

Budget: see `nemesis.budget`. Faults that destroy data (wipe, rollback, cut_power and the like)
begin only when everything has recovered: with every replica in sync one lost disk costs no
acknowledged record, with one in sync it would, by design.

Plays: an episode may be a play whose steps wait for the protocol (`nemesis.unfolding`). Its strikes
are within the same budget. A disk that it takes is one of a replica that other members of the ISR
outlive (`nemesis.disks`), and nothing else begins while one is lost.

Streams: with `streams`, the n-th turn draws from a stream of its own, and so does what depends on
the scene. A turn that cannot come about yet waits, and is left out in the end. So the seed alone
says the kinds, their order, and all that each draws, by the roles of nodes; the cluster says when a
turn comes, which node has a role, and whether a window opens. Without `streams` (in trials), all of
it is drawn from one, in the order in which it is asked for.

Order: which kinds come when is said by `nemesis.rounds`. A turn that cannot begin just now is tried
for a while: some kinds never can begin, and they must not stop the rest.

Idle time: whatever the mix waits for has a bound, the shorter the longer nothing has been broken,
or comes about in a cluster that recovers. What it is, `waits_for` says.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fencepost.clusters.observation import Observation
from fencepost.clusters.port import NodeName
from fencepost.clusters.systems import SYSTEMS
from fencepost.nemesis.budget import NodeBudget
from fencepost.nemesis.disks import NEXT_LOOK, LostDisks, loses_records, loses_vote
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.nemesis.rounds import Rounds
from fencepost.nemesis.targets import ByRole, Choice, NamedNodes, Scene, Share, Target
from fencepost.nemesis.unfolding import AWAIT_S, May, MixMoment, Unfolding
from fencepost.nemesis.verbs.episode import Begun, EpisodeWindow, Opening
from fencepost.nemesis.verbs.partition import Partition
from fencepost.nemesis.verbs.registry import EPISODES, is_fault
from fencepost.nemesis.verbs.step import Breaking, OnNodes, Step
from fencepost.nemesis.waiting import Awaited, Waiting, patience_s

_AGAIN_S: Final = 0.5
"""The time after which a turn that could not come about is tried again."""
_TRIED_S: Final = 5.0
"""The time for which it is tried. It comes when all is whole: little can hinder it then."""
_TRIED_LONGER_S: Final = 20.0
"""The same of a kind that is demanded, and where other faults hinder it, which then go on."""


@dataclass(slots=True, kw_only=True)
class _Episode:
    kind: str
    reserved: tuple[NodeName, ...]
    due: list[tuple[float, Step]]
    destructive: bool
    unfolding: Unfolding | None = None
    unled_s: float | None = None
    """The time since which a voter's disk waits to be lost until another one leads."""

    @property
    def nodes(self) -> frozenset[NodeName]:
        """The nodes that it takes away."""
        played = frozenset[NodeName]() if self.unfolding is None else self.unfolding.nodes
        return played.union(self.reserved)

    @property
    def is_over(self) -> bool:
        return not self.due and (self.unfolding is None or self.unfolding.is_over)


@dataclass(slots=True, kw_only=True)
class _Turn:
    """A kind of fault whose turn it is, and what it draws from."""

    number: int
    kind: str
    target: str
    until_s: float
    """It is left out if it has not come by then."""


@dataclass(slots=True)
class Mix:
    """The random nemesis. Ask `due` every now and then; perform what it returns, in order."""

    spec: MixSpec
    draw: random.Random
    keys: tuple[str, ...]
    streams: Callable[[str], random.Random] | None = None
    """Returns the stream of a name, anew at each call; None: all is drawn from `draw`."""
    windows: list[EpisodeWindow] = field(default_factory=list)
    """The windows of the episodes that began so far."""
    _next_at_s: float | None = None
    _episodes: list[_Episode] = field(default_factory=list)
    _count: int = 0
    _turn_count: int = 0
    _budget: NodeBudget = field(init=False)
    _rounds: Rounds = field(init=False)
    _turn: _Turn | None = None
    _disks: LostDisks = field(default_factory=LostDisks)
    _look_count: int = 0
    _broken_s: float = 0.0
    """The last time at which something was broken by it."""

    def __post_init__(self) -> None:
        """Begin with the first round."""
        self._budget = NodeBudget(self.spec)
        self._rounds = Rounds(self.spec, self.draw)

    def due(
        self,
        now_s: float,
        *,
        scene: Scene,
        impaired: frozenset[NodeName],
        look: Callable[[], Observation] | None = None,
    ) -> tuple[Step, ...]:
        """Return the acts that are due at `now_s`.

        `impaired` are the nodes that are not whole, whatever the reason; nodes of an episode under
        way always count. `look` returns the latest look at the cluster; without it, whatever a play
        awaits is there at once. An Await among the acts was waited for, and holds.
        """
        if any(one.nodes or one.due for one in self._episodes):
            self._broken_s = now_s
        bound_s = patience_s(AWAIT_S, quiet_s=now_s - self._broken_s)
        moment = MixMoment(now_s=now_s, scene=scene, look=look, patience_s=bound_s)
        acts = self._take_due(moment, impaired)
        if self._may_begin(now_s, impaired):
            self._begin(now_s, scene, impaired)
            acts += self._take_due(moment, impaired)
        return tuple(acts)

    def waits_for(self, impaired: frozenset[NodeName]) -> Waiting | None:
        """Return what it waits for though something is due; None if nothing is.

        To be asked after `due`, with the same nodes.
        """
        if any(episode.due for episode in self._episodes):
            return None
        plays = [one.unfolding for one in self._episodes if one.unfolding is not None]
        if plays:
            awaited = [f"{one.prefix}: {words}" for one in plays if (words := one.awaited)]
            return Waiting(kind=Awaited.PROTOCOL, words="; ".join(awaited)) if awaited else None
        if self._disks.lost:
            words = ", ".join(sorted(self._disks.lost))
            known = "to be whole again" if not self._disks.pending else "to be out of every ISR"
            return Waiting(kind=Awaited.DISK, words=f"{words} {known}")
        if impaired and not self.spec.overlap:
            return Waiting(kind=Awaited.RECOVERY, words=", ".join(sorted(impaired)))
        if self._turn is not None:
            return Waiting(kind=Awaited.TURN, words=self._turn.kind)
        return None

    def abandon(self, undone: Sequence[Step] = ()) -> None:
        """Forget all that is under way: somebody else has healed it. `undone`: not performed."""
        self._episodes.clear()
        self._next_at_s = None
        for step in undone:
            if isinstance(step, OnNodes) and loses_records(step):
                assert isinstance(step.target, NamedNodes)
                for node in step.target.nodes:
                    self._disks.forget(node)

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is broken by it, or about to be healed."""
        return not self._episodes

    def _take_due(self, moment: MixMoment, impaired: frozenset[NodeName]) -> list[Step]:
        self._give_up_unsafe(impaired)
        self._look_at_disks(moment, impaired)
        acts: list[Step] = []
        for episode in self._episodes:
            while episode.due and episode.due[0][0] <= moment.now_s:
                if self._is_unled(episode, moment):
                    break
                acts.append(self._noted(episode.due.pop(0)[1], moment))
            if episode.unfolding is not None and not episode.unfolding.is_over:
                acts += self._unfold(episode, episode.unfolding, moment, impaired)
        before = len(self._episodes)
        self._episodes = [episode for episode in self._episodes if not episode.is_over]
        if len(self._episodes) < before and not self.spec.overlap:
            self._next_at_s = None  # the next gap begins once the cluster has recovered
        return acts

    def _is_unled(self, episode: _Episode, moment: MixMoment) -> bool:
        """Return whether a voter's disk has to wait for another leader; one in vain is not lost."""
        step = episode.due[0][1]
        if moment.look is None or not (isinstance(step, OnNodes) and loses_vote(step)):
            return False
        assert isinstance(step.target, NamedNodes)
        if all(self._disks.is_led_without(node, moment.scene) for node in step.target.nodes):
            return False
        if episode.unled_s is None:
            episode.unled_s = moment.now_s
        if moment.now_s > episode.unled_s + AWAIT_S:
            episode.due.pop(0)
        return True

    def _look_at_disks(self, moment: MixMoment, impaired: frozenset[NodeName]) -> None:
        if not self._disks.lost:
            return
        registered: Mapping[NodeName, int] = {}
        if moment.look is None:
            self._look_count += NEXT_LOOK  # whatever is awaited is there at once
        else:
            now = moment.look()
            self._look_count, registered = now.look_count, now.registrations
        self._disks.look(
            moment.scene,
            look_count=self._look_count,
            registrations=lambda node: registered.get(node, 0),
            impaired=impaired,
        )

    def _unfold(
        self,
        episode: _Episode,
        unfolding: Unfolding,
        moment: MixMoment,
        impaired: frozenset[NodeName],
    ) -> list[Step]:
        """Return the steps of a play that are due."""

        def may(step: OnNodes | Partition, node: NodeName) -> May:
            return self._may_strike(episode, step, node, moment, impaired)

        return [
            _of_kind(self._noted(step, moment), episode.kind) for step in unfolding.due(moment, may)
        ]

    def _noted(self, step: Step, moment: MixMoment) -> Step:
        """Return the step, after noting the disks that are lost by it."""
        if not (isinstance(step, OnNodes) and loses_records(step)):
            return step
        registered: Mapping[NodeName, int] = {}
        if moment.look is not None:
            now = moment.look()
            self._look_count, registered = now.look_count, now.registrations
        assert isinstance(step.target, NamedNodes)
        for node in step.target.nodes:
            self._disks.lose(
                node, look_count=self._look_count, registrations=registered.get(node, 0)
            )
        return step

    def _may_strike(
        self,
        episode: _Episode,
        step: OnNodes | Partition,
        node: NodeName,
        moment: MixMoment,
        impaired: frozenset[NodeName],
    ) -> May:
        """Return whether a play may do it: within the budget, so that no record is lost by it."""
        others = {one for other in self._episodes if other is not episode for one in other.nodes}
        gone = impaired | episode.nodes | others
        is_struck = node in episode.nodes or node in moment.scene.down
        if node in others or not (is_struck or self._budget.may_go(node, gone, moment.scene.roles)):
            return May.NO
        if self._disks.hinders(node, moment.scene):
            return May.NOT_YET
        if isinstance(step, OnNodes) and loses_records(step):
            if not self._disks.may_lose(node, moment.scene, gone=gone):
                return May.NO
            if loses_vote(step) and not self._disks.is_led_without(node, moment.scene):
                return May.NOT_YET
        return May.YES

    def _give_up_unsafe(self, impaired: frozenset[NodeName]) -> None:
        """Forget a lost disk that is still to come if something else broke meanwhile."""
        for episode in self._episodes:
            faults = [due for due in episode.due if is_fault(due[1])]
            if not (episode.destructive and faults):
                continue
            if episode.unled_s is None and impaired:
                episode.due.clear()
            elif impaired.difference(episode.reserved):
                episode.due.remove(faults[0])  # its node is down already, and is to be started

    def _may_begin(self, now_s: float, impaired: frozenset[NodeName]) -> bool:
        if self._disks.lost or any(episode.destructive for episode in self._episodes):
            return False
        if not self.spec.overlap and (self._episodes or impaired):
            return False
        if self._next_at_s is None:
            self._next_at_s = now_s + self._gap_s()
        return now_s >= self._next_at_s

    def _begin(self, now_s: float, scene: Scene, impaired: frozenset[NodeName]) -> None:
        if self.streams is not None:
            self._begin_turn(now_s, scene, impaired)
            return
        self._next_at_s = now_s + self._gap_s()
        kind, begun = self._rounds.kind(), self._count
        self._begin_one(kind, now_s, scene, impaired)
        self._rounds.tried(kind, begun=self._count > begun)

    def _gap_s(self) -> float:
        # Of a stream of its own, as how many are drawn depends on the cluster.
        named = self.streams is not None and self.streams(f"{self._turn_count}/gap")
        return (named or self.draw).uniform(*self.spec.gap_s)

    def _begin_turn(self, now_s: float, scene: Scene, impaired: frozenset[NodeName]) -> None:
        """Begin the episode whose turn it is, or try again later, or leave it out."""
        if self._turn is None:
            self._turn_count += 1
            kind = self._rounds.kind()
            target = self._rounds.target() if EPISODES[kind].aimed else ""
            longer = self._rounds.are_demanded or self.spec.overlap
            tried_s = _TRIED_LONGER_S if longer else _TRIED_S
            until_s = now_s + patience_s(tried_s, quiet_s=now_s - self._broken_s)
            self._turn = _Turn(number=self._turn_count, kind=kind, target=target, until_s=until_s)
        turn, begun = self._turn, self._count
        self._next_at_s = now_s + _AGAIN_S
        self._begin_one(turn.kind, now_s, scene, impaired)
        if self._count > begun or now_s >= turn.until_s:
            self._rounds.over(turn.kind)
            self._turn = None
            self._next_at_s = now_s + self._gap_s()

    def _begin_one(
        self, kind: str, now_s: float, scene: Scene, impaired: frozenset[NodeName]
    ) -> None:
        episode = EPISODES[kind]
        busy = impaired | {node for one in self._episodes for node in one.nodes}
        if episode.destructive and (busy or (scene.view is not None and scene.view.lagging)):
            return
        begun = episode.begin(self._draft(now_s, scene, busy))
        if begun is not None:
            self._count += 1
            self._enter(kind, begun, destructive=episode.destructive)

    def _draft(self, now_s: float, scene: Scene, busy: frozenset[NodeName]) -> Opening:
        number = self._count + 1 if self._turn is None else self._turn.number
        draw = self._stream("draws")
        return Opening(
            name=f"mix-{number}",
            now_s=now_s,
            scene=scene,
            draw=draw,
            aim=self._stream("aims"),
            duration_s=self.spec.duration_s,
            gap_s=self.spec.gap_s,
            target=lambda: self._target(draw),
            free=lambda wanted: self._budget.within(wanted, busy, scene.roles),
            roles=[role for role in {*scene.roles.names(scene.nodes)} if self.spec.down_max(role)],
            busy=busy,
            keys=self.keys,
            faults=self.spec.faults,
            messages=self.spec.windows,
            own_names=SYSTEMS[self.spec.system].message_names,
        )

    def _stream(self, name: str) -> random.Random:
        """Return the source of the present turn for these draws."""
        if self.streams is None or self._turn is None:
            return self.draw
        return self.streams(f"{self._turn.number}/{name}")

    def _enter(self, kind: str, begun: Begun, *, destructive: bool) -> None:
        """Have an episode begin. Its steps say of which kind they are."""
        due = [(at_s, _of_kind(step, kind)) for at_s, step in begun.due]
        unfolding = None
        if begun.play:
            name = f"mix-{self._count}" if self._turn is None else f"mix-{self._turn.number}"
            unfolding = Unfolding(prefix=name, play=begun.play, draw=self._stream("plays"))
        if begun.window is not None:
            self.windows.append(begun.window)
        episode = _Episode(
            kind=kind,
            reserved=begun.nodes,
            due=due,
            destructive=destructive,
            unfolding=unfolding,
        )
        self._episodes.append(episode)

    def _target(self, draw: random.Random) -> Target:
        word = self._rounds.target() if self._turn is None else self._turn.target
        for described in SYSTEMS[self.spec.system].targets:
            if word == described.drawn_as:
                key = draw.choice(self.keys) if described.of_key else ""
                return ByRole(role=described, key=key)
        share, role = word.split()[0], word.split()[-1].removesuffix("s")
        return Choice(share=Share(share), role=role)


def _of_kind(step: Step, kind: str) -> Step:
    return replace(step, kind=kind) if isinstance(step, Breaking) else step
