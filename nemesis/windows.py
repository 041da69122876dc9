"""Random plays of one pattern, in which protocols break: the message that matters is held.

A replica leaves the ISR and comes back; the moment the message of interest is sent, that very
message is held; a party of it is struck (its sender, its subject, the controller it goes to, a
third); something is done upon an event of the protocol; the message arrives upon another. Faults at
random times hardly ever meet such a window, even with the right message held: what ties the steps
together is that each waits for what the protocol does, not for a time.

A window is a play like any other: it can be stored, replayed, shrunk, and run on any cluster that
has a wire. Its awaits are short: a window that does not open is given up, and the next one drawn.

The message may be given. What happens first is then what makes a node send it: a follower is out of
the ISR and comes back, or is not heard any more; a broker restarts; the active controller falls.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Final

from clusters.kafka_conditions import Fenced, IsrMember, Registered
from clusters.kafka_port import Role, role_of
from clusters.kafka_targets import ACTIVE_CONTROLLER
from clusters.observation import Condition, Held, Seen
from clusters.port import OWN_ROLES, NodeName, NodeRoles
from nemesis.targets import ByRole, NamedNodes, Target
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
from nemesis.verbs.step import OnNodes, Parties, Play, Step
from nemesis.verbs.stop import ShutDown
from nemesis.verbs.wait import Wait
from nemesis.verbs.wipe import Wipe
from nemesis.window_roles import WindowRoles, draw_roles
from nemesis.wire.rules import (
    Action,
    Clause,
    Direction,
    Duplicate,
    Hold,
    Match,
    Operator,
    Reorder,
    Watch,
)

WINDOW_STRIKES: Final = (Kill, Pause, ShutDown, CutPower)
"""The ways to strike a party, besides wiping its disk after a kill."""

_WAYS: Final = ("pause", "pause", "kill", "cut", "stay")
_WAYS_TO: Final[Mapping[str, tuple[str, ...]]] = {
    "AlterPartition": ("pause", "pause", "kill", "cut", "deaf", "shrink"),
    "BrokerRegistration": ("kill",),
    "BrokerHeartbeat": ("stay", "pause", "kill"),
    "Fetch": ("stay", "pause", "kill", "cut"),
}
"""The ways in which the follower leaves before each message, where that is given."""
_OF_QUORUM: Final[Mapping[str, tuple[type[OnNodes], ...]]] = {
    "Vote": (Kill, Pause, ShutDown),
    "BeginQuorumEpoch": (Kill, Pause, ShutDown),
    "EndQuorumEpoch": (ShutDown,),
}
"""The messages between controllers, and how the active one falls so that they are sent."""
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


def drawn_window(
    draw: random.Random,
    *,
    key: str,
    replicas: Sequence[int],
    nodes: Sequence[NodeName],
    roles: NodeRoles = OWN_ROLES,
    strikes: Sequence[type[OnNodes]] = WINDOW_STRIKES,
    message: str | None = None,
    passes: bool = False,
) -> Play:
    """Return a window around `key`, whose replicas are these broker numbers, the leader first.

    `message`: the API to hold; None: any. `passes`: an ambush: the message is seen and passed on.
    """
    cast, action = draw_roles(draw, key, replicas, nodes, roles), Watch() if passes else Hold()
    window = _Window(draw, cast, strikes, replicas[1:], action)
    if message is not None and message in _OF_QUORUM:
        return window.of_quorum(message)
    return window.play(message)


def drawn_message_fault(
    draw: random.Random,
    *,
    key: str,
    replicas: Sequence[int],
    nodes: Sequence[NodeName],
    roles: NodeRoles = OWN_ROLES,
    message: str,
    action: Action,
) -> Play:
    """Return a play that does this to messages of one kind around `key`, and strikes nothing."""
    cast = draw_roles(draw, key, replicas, nodes, roles)
    return _Window(draw, cast, (), replicas[1:], action).single(message)


class _Window:
    """One window while it is drawn: what was broken is mended before it ends, or by the heal."""

    def __init__(
        self,
        draw: random.Random,
        cast: WindowRoles,
        strikes: Sequence[type[OnNodes]],
        others: Sequence[int],
        action: Action,
    ) -> None:
        self._action = action
        self._draw = draw
        self._cast = cast
        self._strikes = strikes
        self._others = others
        """Replicas that may become the leader instead."""
        self._steps: list[Step] = []
        self._down: list[NodeName] = []
        self._laid: list[str] = []

    def play(self, message: str | None) -> Play:
        """Draw the whole play."""
        self._open(message, _WAYS if message is None else _WAYS_TO[message])
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

    def of_quorum(self, message: str) -> Play:
        """Draw the whole play around a message between controllers."""
        self._open_quorum(message)
        if self._chance(0.5):
            self._strike(self._party())
        if self._chance(0.5):
            self._steps.append(Wait(for_s=self._draw.choice((0.5, 2.0, 4.0))))
        if self._chance(0.7):
            self._lift("window")  # without an election no node comes back
        self._second_act()
        self._aftermath()
        return tuple(self._steps)

    def single(self, message: str) -> Play:
        """Draw the whole play in which nothing is struck."""
        if message in _OF_QUORUM:
            self._open_quorum(message)
        else:
            # A message that is sent all the time takes no departure.
            often = "stay" in _WAYS_TO[message]
            self._open(message, ("stay",) if often else _WAYS_TO[message])
        self._steps.append(Wait(for_s=self._draw.choice((0.5, 2.0, 4.0))))
        for name in list(self._laid):
            self._lift(name)
        return tuple(self._steps)

    def _open(self, message: str | None, ways: Sequence[str]) -> None:
        """Have the message sent, and met by the rule."""
        way = self._draw.choice(ways)
        back = self._leave(way)
        self._hold("window", message or self._draw.choice(_MESSAGES), joins=way != "shrink")
        self._steps += back
        if way == "shrink":
            self._deafen(self._cast.follower, "deaf")
        if "deaf" in self._laid and way != "shrink":
            self._lift("deaf")
        self._await_message()

    def _open_quorum(self, message: str) -> None:
        times = 1 if self._chance(0.5) else None
        self._lay("window", Match(api=message, direction=self._direction(0.3), times=times))
        fall = self._draw.choice(_OF_QUORUM[message])
        self._steps.append(fall(target=ByRole(role=ACTIVE_CONTROLLER)))
        self._await_message()

    def _leave(self, way: str) -> list[Step]:
        """Have the follower leave the ISR; return the steps that bring it back."""
        follower, key = self._cast.follower, self._cast.key
        number = int(follower.rpartition("-")[2])
        if way in ("stay", "shrink"):
            return []
        back: list[Step]
        if way == "pause":
            self._act(Pause, follower)
            back = [_act(Resume, follower)]
        elif way == "kill":
            self._act(Kill, follower)
            back = [_act(Start, follower)]
        elif way == "deaf":
            self._deafen(follower, "deaf")
            back = []
        else:
            party = Party(targets=(NamedNodes(nodes=(follower,)),))
            self._steps.append(Partition(name="cut", cut=Isolate(party=party)))
            back = []
        self._await(IsrMember(members={key: number}, inside=False))
        if way == "cut":
            self._laid.append("cut")
        return back

    def _hold(self, name: str, draw_api: str, *, joins: bool) -> None:
        """Hold a message; `joins`: an AlterPartition may be one that the follower joins by."""
        cast = self._cast
        number = int(cast.follower.rpartition("-")[2])
        where: tuple[Clause, ...] = ()
        source: Target = NamedNodes(nodes=(cast.follower,))
        target: Target | None = None
        if draw_api == "AlterPartition":
            source = NamedNodes(nodes=(cast.leader,))
            where = (Clause(field="key", operator=Operator.IS, value=cast.key),)
            if self._chance(0.7):
                operator = Operator.INCLUDES if joins else Operator.EXCLUDES
                where += (Clause(field="isr", operator=operator, value=number),)
        elif draw_api == "Fetch":
            target = NamedNodes(nodes=(cast.leader,))
        direction = self._direction(0.6 if draw_api == "Fetch" else 0.2)
        match = Match(
            api=draw_api,
            direction=direction,
            # An answer says nothing of its subject: only the API is known of it.
            where=where if direction is Direction.REQUEST else (),
            times=1 if self._chance(0.5) else None,
        )
        self._lay(name, match, source=source, target=target)
        if "cut" in self._laid:
            self._heal_cut()

    def _direction(self, answers: float) -> Direction:
        if isinstance(self._action, Duplicate | Reorder):
            return Direction.REQUEST
        return Direction.RESPONSE if self._chance(answers) else Direction.REQUEST

    def _lay(
        self, name: str, match: Match, *, source: Target | None = None, target: Target | None = None
    ) -> None:
        self._steps.append(
            Lay(
                name=name,
                action=self._action if name == "window" else Hold(),
                match=match,
                source=Parties(target=source),
                target=Parties(target=target),
            )
        )
        self._laid.append(name)

    def _deafen(self, node: NodeName, name: str) -> None:
        """Hold what the node asks the leader for."""
        ends = [NamedNodes(nodes=(one,)) for one in (node, self._cast.leader)]
        self._lay(name, Match(api="Fetch"), source=ends[0], target=ends[1])

    def _await_message(self) -> None:
        is_held = isinstance(self._action, Hold)
        self._await(Held(name="window") if is_held else Seen(name="window"))

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
        self._steps.append(step(target=ByRole(role=ACTIVE_CONTROLLER)))

    def _second_act(self) -> None:
        """Upon an event, the one that was struck comes back, perhaps without catching up."""
        struck = [node for node in self._down if role_of(node) is Role.BROKER]
        if not struck or self._chance(0.15):
            return
        node = self._draw.choice(struck)
        if self._chance(0.7):
            self._await(Fenced(node=node, fenced=True))
        if node != self._cast.leader and self._chance(0.6):
            self._deafen(node, "catch-up")
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
