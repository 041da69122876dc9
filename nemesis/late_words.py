"""Random plays in which a word between broker and controller arrives when it holds no more.

In the ZooKeeper generation the controller tells brokers what they are, and brokers tell the
controller what they see; who is registered, both read in ZooKeeper. So a message can be overtaken
by what it is about: a heartbeat or an IsrChange by the next incarnation of its sender, an IsrChange
by that of the follower which it names or by the next leader, a controller's word by the next
controller or by a restart of the broker to which it goes. And a broker may restart while the
controller does not reach ZooKeeper, so that only the incarnation id tells it.

Each play holds one such message, has one of these happen, and lets the message arrive. Like a
window, it is a play that can be stored, replayed and run on any cluster with a wire.
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

__all__ = ["drawn_late_word"]

_WITHIN_S: Final = 6.0
"""A bound of every await: longer than a session and a time-out of a quick cluster."""
_PAUSES_S: Final = (0.1, 0.3, 1.0, 3.0)
_BLIND_AFTER_S: Final = (0.5, 1.0, 1.5)
"""The controller's session has to outlive that of the broker, which is 2 s in a quick cluster."""
_LATE: Final = "late"
_WORDS: Final = ("UpdateMetadata", "LeaderAndIsr")


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
        others = [one for one in replicas[1:] if _node(one) != controller]
        number = draw.choice(others or replicas[1:])
        self._draw = draw
        self._key = key
        self._to = number
        self._leader = _node(replicas[0])
        self._follower = _node(number)
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


def _node(number: int) -> NodeName:
    return NodeName(f"broker-{number}")
