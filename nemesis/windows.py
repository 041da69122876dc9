"""Random plays of one pattern, in which protocols break: the message that matters is held.

A replica leaves the ISR and comes back; the moment the message of interest is sent, that very
message is held; a party of it is struck (its sender, its subject, the controller it goes to, a
third); something is done upon an event of the protocol; the message arrives upon another. Faults at
random times hardly ever meet such a window, even with the right message held: what ties the steps
together is that each waits for what the protocol does, not for a time.

A window is a play like any other: it can be stored, replayed, shrunk, and run on any cluster that
has a wire. Its awaits are short: a window that does not open is given up, and the next one drawn.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from clusters.kafka_conditions import Fenced, IsrMember, Registered
from clusters.kafka_port import Role, role_of
from clusters.observation import Condition, Held
from clusters.port import NodeName
from nemesis.steps import Play
from nemesis.targets import ByRole, NamedNodes, RoleOf, Target
from nemesis.topology import Isolate, Party
from nemesis.verbs.await_condition import Await
from nemesis.verbs.cut_power import CutPower
from nemesis.verbs.heal import HealPartition
from nemesis.verbs.kill import Kill
from nemesis.verbs.lift import Lift
from nemesis.verbs.move_leader import MoveLeader
from nemesis.verbs.partition import Partition
from nemesis.verbs.pause import Pause, Resume
from nemesis.verbs.rule import Lay
from nemesis.verbs.start import Start
from nemesis.verbs.step import OnNodes, Parties, Step
from nemesis.verbs.stop import ShutDown
from nemesis.verbs.wait import Wait
from nemesis.verbs.wipe import Wipe
from nemesis.wire.rules import Clause, Direction, Hold, Match, Operator

__all__ = ["WINDOW_STRIKES", "drawn_window"]

WINDOW_STRIKES: Final = (Kill, Pause, ShutDown, CutPower)
"""The ways to strike a party, besides wiping its disk after a kill."""

_WITHIN_S: Final = 6.0
"""A bound of every await: longer than a lease and an election of a quick cluster."""
_MESSAGES: Final = (
    "AlterPartition",
    "AlterPartition",
    "AlterPartition",
    "AlterPartition",
    "BrokerRegistration",
    "BrokerHeartbeat",
    "Fetch",
    "Fetch",
)
"""The messages to draw from: the ISR is where most windows are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cast:
    key: str
    leader: NodeName
    follower: NodeName
    third: NodeName | None
    controllers: tuple[NodeName, ...]


def drawn_window(
    draw: random.Random,
    *,
    key: str,
    replicas: Sequence[int],
    nodes: Sequence[NodeName],
    strikes: Sequence[type[OnNodes]] = WINDOW_STRIKES,
) -> Play:
    """Return a window around `key`, whose replicas are these broker numbers, the leader first."""
    numbers = list(replicas)
    leader, follower = numbers[0], draw.choice(numbers[1:])
    others = [n for n in nodes if role_of(n) is Role.BROKER and n not in _names(leader, follower)]
    cast = _Cast(
        key=key,
        leader=NodeName(f"broker-{leader}"),
        follower=NodeName(f"broker-{follower}"),
        third=draw.choice(others) if others else None,
        controllers=tuple(node for node in nodes if role_of(node) is Role.CONTROLLER),
    )
    return _Window(draw, cast, strikes, numbers[1:]).play()


def _names(*numbers: int) -> tuple[NodeName, ...]:
    return tuple(NodeName(f"broker-{number}") for number in numbers)


class _Window:
    """One window while it is drawn: what was broken is mended before it ends, or by the heal."""

    def __init__(
        self,
        draw: random.Random,
        cast: _Cast,
        strikes: Sequence[type[OnNodes]],
        others: Sequence[int],
    ) -> None:
        self._draw = draw
        self._cast = cast
        self._strikes = strikes
        self._others = others
        """Replicas that may become the leader instead."""
        self._steps: list[Step] = []
        self._down: list[NodeName] = []
        self._laid: list[str] = []

    def play(self) -> Play:
        """Draw the whole play."""
        back = self._leave()
        self._hold("window", draw_api=self._draw.choice(_MESSAGES))
        self._steps += back
        self._await(Held(name="window"))
        if self._others and self._chance(0.15):
            to = self._draw.choice(self._others)
            self._steps.append(MoveLeader(leaders={self._cast.key: to}, within_s=_WITHIN_S))
        else:
            self._strike(self._party())
        self._second_act()
        if self._chance(0.6):
            self._strike(self._cast.leader)
            if self._chance(0.3):
                self._second_act()
        self._lift("window")
        self._aftermath()
        return tuple(self._steps)

    def _leave(self) -> list[Step]:
        """Have the follower leave the ISR; return the steps that bring it back."""
        follower, key = self._cast.follower, self._cast.key
        number = int(follower.rpartition("-")[2])
        way = self._draw.choice(("pause", "pause", "kill", "cut", "stay"))
        if way == "stay":
            return []
        back: list[Step]
        if way == "pause":
            self._act(Pause, follower)
            back = [_act(Resume, follower)]
        elif way == "kill":
            self._act(Kill, follower)
            back = [_act(Start, follower)]
        else:
            party = Party(targets=(NamedNodes(nodes=(follower,)),))
            self._steps.append(Partition(name="cut", cut=Isolate(party=party)))
            back = []
        self._await(IsrMember(members={key: number}, inside=False))
        if way == "cut":
            self._laid.append("cut")
        return back

    def _hold(self, name: str, *, draw_api: str) -> None:
        cast = self._cast
        number = int(cast.follower.rpartition("-")[2])
        where: tuple[Clause, ...] = ()
        source: Target = NamedNodes(nodes=(cast.follower,))
        target: Target | None = None
        if draw_api == "AlterPartition":
            source = NamedNodes(nodes=(cast.leader,))
            where = (Clause(field="key", operator=Operator.IS, value=cast.key),)
            if self._chance(0.7):
                where += (Clause(field="isr", operator=Operator.INCLUDES, value=number),)
        elif draw_api == "Fetch":
            target = NamedNodes(nodes=(cast.leader,))
        answers = 0.6 if draw_api == "Fetch" else 0.2
        direction = Direction.RESPONSE if self._chance(answers) else Direction.REQUEST
        times = 1 if self._chance(0.5) else None
        self._steps.append(
            Lay(
                name=name,
                action=Hold(),
                match=Match(
                    api=draw_api,
                    direction=direction,
                    # An answer says nothing of its subject: only the API is known of it.
                    where=where if direction is Direction.REQUEST else (),
                    times=times,
                ),
                source=Parties(target=source),
                target=Parties() if target is None else Parties(target=target),
            )
        )
        self._laid.append(name)
        if "cut" in self._laid:
            self._heal_cut()

    def _heal_cut(self) -> None:
        self._laid.remove("cut")
        self._steps.append(HealPartition(name="cut"))

    def _party(self) -> NodeName:
        cast = self._cast
        parties = [cast.follower] * 4 + [cast.leader] * 2 + list(cast.controllers[:1])
        if cast.third is not None:
            parties.append(cast.third)
        return self._draw.choice(parties)

    def _strike(self, node: NodeName) -> None:
        if node in self._down:
            return
        if role_of(node) is Role.CONTROLLER:
            self._strike_controller()
            return
        step = self._draw.choice(list(self._strikes))
        if step is CutPower and node != self._cast.follower:
            # Records that the last member of the ISR loses are lost for good.
            step = Kill
        wipes = step is Kill and self._chance(0.6)
        self._act(step, node)
        self._down.append(node)
        if step is Pause:
            return
        if wipes and node is self._cast.follower:
            self._steps.append(
                Wipe(
                    target=NamedNodes(nodes=(node,)),
                    keep_directory_id=True,
                )
            )

    def _strike_controller(self) -> None:
        step = self._draw.choice((Kill, Pause))
        self._steps.append(step(target=ByRole(role=RoleOf.ACTIVE_CONTROLLER)))

    def _second_act(self) -> None:
        """Upon an event, the one that was struck comes back, perhaps without catching up."""
        struck = [node for node in self._down if role_of(node) is Role.BROKER]
        if not struck or self._chance(0.15):
            return
        node = self._draw.choice(struck)
        if self._chance(0.7):
            self._await(Fenced(node=node, fenced=True))
        if node != self._cast.leader and self._chance(0.6):
            self._steps.append(
                Lay(
                    name="catch-up",
                    action=Hold(),
                    match=Match(api="Fetch"),
                    source=Parties(target=NamedNodes(nodes=(node,))),
                    target=Parties(target=NamedNodes(nodes=(self._cast.leader,))),
                )
            )
            self._laid.append("catch-up")
        self._mend(node)
        event: Condition = Fenced(node=node, fenced=False)
        if self._chance(0.2):
            event = Registered(node=node)
        self._await(event)

    def _aftermath(self) -> None:
        """Draw what the arrival of the message leads to, and the way back."""
        if self._cast.leader in self._down and self._chance(0.8):
            self._await(Fenced(node=self._cast.leader, fenced=True))
        for name in list(self._laid):
            self._lift(name)
        self._steps.append(Wait(for_s=self._draw.choice((0.1, 0.5, 1.0))))
        for node in list(self._down):
            self._mend(node)

    def _mend(self, node: NodeName) -> None:
        paused = any(
            isinstance(step, Pause) and _names_it(step, node) for step in self._since_up(node)
        )
        self._act(Resume if paused else Start, node)
        self._down.remove(node)

    def _since_up(self, node: NodeName) -> list[Step]:
        """Return the steps since the node was last brought up."""
        ups = [
            place
            for place, step in enumerate(self._steps)
            if isinstance(step, Start | Resume) and _names_it(step, node)
        ]
        return self._steps[ups[-1] + 1 :] if ups else self._steps

    def _lift(self, name: str) -> None:
        if name in self._laid:
            self._laid.remove(name)
            self._steps.append(Lift(name=name))

    def _act(self, step: type[OnNodes], node: NodeName) -> None:
        self._steps.append(_act(step, node))

    def _await(self, condition: Condition) -> None:
        self._steps.append(Await(condition=condition, within_s=_WITHIN_S))

    def _chance(self, share: float) -> bool:
        return self._draw.random() < share


def _act(step: type[OnNodes], node: NodeName) -> OnNodes:
    return step(target=NamedNodes(nodes=(node,)))


def _names_it(act: OnNodes, node: NodeName) -> bool:
    return isinstance(act.target, NamedNodes) and node in act.target.nodes
