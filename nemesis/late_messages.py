"""Random plays in which a message arrives when what it says holds no more.

A leader judges a follower by its Fetches, and a Fetch outlives its sender in the buffers of the
network. The follower is fenced, so that it is out of the ISR and has all records nevertheless: its
heartbeats are held. With a third replica away, too few are in sync for any write, so that
the end of the log stands still. Then one Fetch is held, which asks for that very end; its sender
dies, loses its disk, and is registered and unfenced anew. What it fetches now is held as well, and
the old Fetch arrives. A leader that knows of the new registration, and does not ask which one the
Fetch is of, takes an empty replica for one that has everything (KIP-903).

In the ZooKeeper generation the controller tells brokers what they are, and brokers tell the
controller what they see; who is registered, both read in ZooKeeper. So a message can be overtaken
by what it is about: a heartbeat or an IsrChange by the next incarnation of its sender, an IsrChange
by that of the follower which it names or by the next leader, a controller's word by the next
controller or by a restart of the broker to which it goes. And a broker may restart while the
controller does not reach ZooKeeper, so that only the incarnation id tells it. Each such play holds
one message, has one of these happen, and lets the message arrive.

Like a window, each is a play that can be stored, replayed and run on any cluster with a wire.
"""

import random
from collections.abc import Sequence
from typing import Final

from clusters.kafka_conditions import Fenced, IsrMember, Registered
from clusters.observation import Condition, Held
from clusters.port import NodeName
from nemesis.targets import NamedNodes
from nemesis.topology import Groups, Party
from nemesis.verbs.await_condition import Await
from nemesis.verbs.heal import HealPartition
from nemesis.verbs.kill import Kill
from nemesis.verbs.lift import Lift
from nemesis.verbs.move_leader import MoveLeader
from nemesis.verbs.partition import Partition
from nemesis.verbs.pause import Pause, Resume
from nemesis.verbs.rule import Lay
from nemesis.verbs.start import Start
from nemesis.verbs.step import Parties, Play, Step
from nemesis.verbs.stop import ShutDown
from nemesis.verbs.wait import Wait
from nemesis.verbs.wipe import Wipe
from nemesis.wire.rules import Clause, Hold, Match, Operator

REPLICAS_MIN: Final = 3
_CATCHES_UP_S: Final = (0.05, 0.2, 0.5)
_HEARS_S: Final = (0.0, 0.05, 0.2)
"""The times from the follower's return to the arrival of its old Fetch: the leader hears of it
late.
"""
_JOINS_S: Final = (0.05, 0.2, 0.5)
_SILENCE: Final = "silence"
_LATE: Final = "late"
_CATCH_UP: Final = "catch-up"
_WITHIN_S: Final = 6.0
"""A bound of every await: longer than a session and a time-out of a quick cluster."""
_PAUSES_S: Final = (0.1, 0.3, 1.0, 3.0)
_BLIND_AFTER_S: Final = (0.5, 1.0, 1.5)
"""The controller's session has to outlive that of the broker, which is 2 s in a quick cluster."""
_WORDS: Final = ("UpdateMetadata", "LeaderAndIsr")


def drawn_late_fetch(draw: random.Random, *, key: str, replicas: Sequence[int]) -> Play:
    """Return a late Fetch of `key`, whose replicas are these broker numbers, the leader first."""
    assert len(replicas) >= REPLICAS_MIN, replicas
    number = draw.choice(replicas[1:])
    leader, follower = _node(replicas[0]), _node(number)
    others = [_node(one) for one in replicas[1:] if one != number]
    away = draw.choice((Kill, Pause))
    steps: list[Step] = [
        *(away(target=one) for one in others),
        _hold(_SILENCE, Match(api="BrokerHeartbeat"), source=follower),
        *(_await(IsrMember(members={key: one}, inside=False)) for one in replicas[1:]),
        Wait(for_s=draw.choice(_CATCHES_UP_S)),
        _hold(_LATE, Match(api="Fetch", times=1), source=follower, target=leader),
        _await(Held(name=_LATE)),
        Kill(target=follower),
        Lift(name=_SILENCE, discard=True),
    ]
    if draw.random() < 0.8:  # noqa: PLR2004
        steps.append(Wipe(target=follower, keep_directory_id=True))
    steps += [
        _hold(_CATCH_UP, Match(api="Fetch"), source=follower, target=leader),
        Start(target=follower),
        _await(Fenced(node=follower.nodes[0], fenced=False)),
        Wait(for_s=draw.choice(_HEARS_S)),
        Lift(name=_LATE),
        Wait(for_s=draw.choice(_JOINS_S)),
    ]
    if draw.random() < 0.5:  # noqa: PLR2004
        # The replica that joined may lead now.
        steps += [
            Kill(target=leader),
            _await(Fenced(node=leader.nodes[0], fenced=True)),
        ]
    return (*steps, Lift(name=_CATCH_UP), Wait(for_s=draw.choice(_JOINS_S)))


def _hold(name: str, match: Match, *, source: NamedNodes, target: NamedNodes | None = None) -> Lay:
    return Lay(
        name=name,
        action=Hold(),
        match=match,
        source=Parties(target=source),
        target=Parties() if target is None else Parties(target=target),
    )


def _await(condition: Condition) -> Await:
    return Await(condition=condition, within_s=_WITHIN_S)


def _node(number: int) -> NamedNodes:
    return NamedNodes(nodes=(_broker(number),))


def _broker(number: int) -> NodeName:
    return NodeName(f"broker-{number}")


def drawn_late_word(
    draw: random.Random,
    *,
    key: str,
    replicas: Sequence[int],
    controller: NodeName,
    ensemble: Sequence[NodeName],
) -> Play:
    """Return a late word around `key`, whose replicas are these broker numbers, the leader first.

    `controller`: the broker that is it now. `ensemble`: all servers of ZooKeeper.
    """
    play = _LateWord(draw, key, replicas, controller, ensemble)
    draw.choice(
        (
            play.heartbeat,
            play.shrink,
            play.shrink,
            play.growth,
            play.growth,
            play.controllers_word,
            play.controllers_word,
            play.restart_unheard,
        )
    )()
    return tuple(play.steps)


class _LateWord:
    """One late word while it is drawn."""

    def __init__(
        self,
        draw: random.Random,
        key: str,
        replicas: Sequence[int],
        controller: NodeName,
        ensemble: Sequence[NodeName],
    ) -> None:
        # One that is not the controller: who does not hear of that one does nothing of interest.
        others = [one for one in replicas[1:] if _broker(one) != controller]
        number = draw.choice(others or replicas[1:])
        self._draw = draw
        self._key = key
        self._to = number
        self._leader = _broker(replicas[0])
        self._follower = _broker(number)
        self._controller = controller
        self._ensemble = tuple(ensemble)
        self._broker = draw.choice(
            [one for one in (self._leader, self._follower) if one != controller]
        )
        """One of the two that is not the controller."""
        self._is_laid = False
        """True if the rule that holds the message is laid, and not lifted yet."""
        self.steps: list[Step] = []

    def heartbeat(self) -> None:
        """Draw a heartbeat that is overtaken by the next incarnation of its sender."""
        self._hold(
            Match(api="MetadataHeartbeat", times=1), source=self._broker, to=self._controller
        )
        self._renew(self._broker)
        self._release()

    def shrink(self) -> None:
        """Draw an IsrChange that its leader's next incarnation, or the next leader, overtakes."""
        self._lay(_LATE, self._of_key(Operator.EXCLUDES), source=self._leader)
        self._cut("lag", (self._leader,), (self._follower,))
        self._await(Held(name=_LATE))
        self.steps.append(HealPartition(name="lag"))
        if self._chance(0.5):
            self.steps.append(MoveLeader(leaders={self._key: self._to}, within_s=_WITHIN_S))
        else:
            renew = self._draw.choice((self._renew, self._renew_unheard, self._outlive_unheard))
            renew(self._leader)
        self._release()

    def growth(self) -> None:
        """Draw an IsrChange that the next incarnation, perhaps wiped, of a new member overtakes."""
        self.steps.append(Pause(target=_named(self._follower)))
        self._await(IsrMember(members={self._key: self._to}, inside=False))
        self._lay(_LATE, self._of_key(Operator.INCLUDES), source=self._leader)
        self.steps.append(Resume(target=_named(self._follower)))
        self._await(Held(name=_LATE))
        self.steps.append(Kill(target=_named(self._follower)))
        self._await(Fenced(node=self._follower, fenced=True))
        if self._chance(0.8):
            self.steps.append(Wipe(target=_named(self._follower), keep_directory_id=True))
        self._lay("catch-up", Match(api="Fetch"), source=self._follower, to=self._leader)
        self.steps.append(Start(target=_named(self._follower)))
        self._await(Fenced(node=self._follower, fenced=False))
        falls = self._chance(0.5)
        if falls:
            self.steps.append(Kill(target=_named(self._leader)))
        self._release()
        if falls:
            self._await(Fenced(node=self._leader, fenced=True))
        self.steps.append(Lift(name="catch-up"))
        if falls:
            self.steps.append(Start(target=_named(self._leader)))

    def controllers_word(self) -> None:
        """Draw a controller's word that the next controller, or a restart, overtakes."""
        to = self._broker
        self._lay(_LATE, Match(api=self._draw.choice(_WORDS)), source=self._controller, to=to)
        self.steps.append(MoveLeader(leaders={self._key: self._to}, within_s=_WITHIN_S))
        self._await(Held(name=_LATE))
        match self._draw.choice(("deposed", "cut off", "restart", "wait")):
            case "deposed":
                self.steps.append(Pause(target=_named(self._controller)))
                self._await(Fenced(node=self._controller, fenced=True))
                self._pause()
                self._release()
                self.steps.append(Resume(target=_named(self._controller)))
            case "cut off":
                self._cut("old", (self._controller,), self._ensemble)
                self._await(Fenced(node=self._controller, fenced=True))
                self._pause()
                self._release()
                self.steps.append(HealPartition(name="old"))
            case "restart":
                self._renew_unheard(to)
                self._release()
            case _:
                self._pause()
                self._release()

    def restart_unheard(self) -> None:
        """Draw a restart of a broker while the controller does not reach ZooKeeper."""
        self._renew_unheard(self._broker)
        self._pause()

    def _renew(self, node: NodeName) -> None:
        """Have a node registered anew: its session ends, or it restarts."""
        if self._chance(0.5):
            self._cut("old", (node,), self._ensemble)
            self._await(Fenced(node=node, fenced=True))
            self.steps.append(HealPartition(name="old"))
        else:
            strike = self._draw.choice((Kill, ShutDown))
            self.steps.append(strike(target=_named(node)))
            self._await(Fenced(node=node, fenced=True))
            self.steps.append(Start(target=_named(node)))
        self._await(Fenced(node=node, fenced=False))

    def _renew_unheard(self, node: NodeName) -> None:
        """Have a node registered anew while the controller hears nothing of ZooKeeper."""
        if node == self._controller:
            self._renew(node)
            return
        self._cut("blind", (self._controller,), self._ensemble)
        self.steps.append(ShutDown(target=_named(node)))
        self._await(Fenced(node=node, fenced=True))
        self.steps.append(Start(target=_named(node)))
        self._await(Registered(node=node))
        self.steps.append(Wait(for_s=self._draw.choice((0.0, 0.1, 0.5))))
        if self._chance(0.5):
            self._release()
        self.steps.append(HealPartition(name="blind"))

    def _outlive_unheard(self, node: NodeName) -> None:
        """Have a node outlive its session while the controller hears nothing of ZooKeeper."""
        if node == self._controller:
            self._renew(node)
            return
        self._cut("old", (node,), self._ensemble)
        self.steps.append(Wait(for_s=self._draw.choice(_BLIND_AFTER_S)))
        self._cut("blind", (self._controller,), self._ensemble)
        self._await(Fenced(node=node, fenced=True))
        self.steps.append(HealPartition(name="old"))
        self._await(Registered(node=node))
        self.steps.append(Wait(for_s=self._draw.choice((0.1, 0.3, 0.5))))
        self._release()
        self.steps.append(HealPartition(name="blind"))

    def _of_key(self, operator: Operator) -> Match:
        return Match(
            api="IsrChange",
            where=(
                Clause(field="key", operator=Operator.IS, value=self._key),
                Clause(field="isr", operator=operator, value=self._to),
            ),
        )

    def _hold(self, match: Match, *, source: NodeName, to: NodeName) -> None:
        self._lay(_LATE, match, source=source, to=to)
        self._await(Held(name=_LATE))

    def _lay(
        self, name: str, match: Match, *, source: NodeName, to: NodeName | None = None
    ) -> None:
        self._is_laid |= name == _LATE
        self.steps.append(
            Lay(
                name=name,
                action=Hold(),
                match=match,
                source=Parties(target=_named(source)),
                target=Parties() if to is None else Parties(target=_named(to)),
            )
        )

    def _release(self) -> None:
        """Let the message arrive, if one is held."""
        if self._is_laid:
            self._is_laid = False
            self.steps.append(Lift(name=_LATE))
            self._pause()

    def _cut(self, name: str, ones: Sequence[NodeName], others: Sequence[NodeName]) -> None:
        parties = tuple(Party(targets=tuple(map(_named, group))) for group in (ones, others))
        self.steps.append(Partition(name=name, cut=Groups(groups=parties)))

    def _await(self, condition: Condition) -> None:
        self.steps.append(Await(condition=condition, within_s=_WITHIN_S))

    def _chance(self, share: float) -> bool:
        return self._draw.random() < share

    def _pause(self) -> None:
        self.steps.append(Wait(for_s=self._draw.choice(_PAUSES_S)))


def _named(node: NodeName) -> NamedNodes:
    return NamedNodes(nodes=(node,))
