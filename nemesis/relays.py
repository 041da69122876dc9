"""Random plays in which the leadership goes round while some replicas do not hear each other.

A follower's fetch and a leader's answer belong to one leader epoch. A relay lets them arrive in
another: fetches of some replicas, or the answers to them, are held; one replica may be out of the
ISR meanwhile and come back; the leadership moves on, once or a few times, though every node is
alive; and the held frames arrive in an order of their own. So records that only one replica has are
overwritten, high watermarks are known to some replicas and not to others, and old messages reach
new leaders.

Like a window, a relay is a play that can be stored, replayed and run on any cluster with a wire. It
needs three replicas: with two there is no other follower to be overtaken.
"""

import random
from collections.abc import Sequence
from typing import Final

from clusters.kafka_conditions import IsrMember
from clusters.port import NodeName
from nemesis.targets import NamedNodes
from nemesis.verbs.await_condition import Await
from nemesis.verbs.lift import Lift
from nemesis.verbs.move_leader import MoveLeader
from nemesis.verbs.pause import Pause, Resume
from nemesis.verbs.rule import Lay
from nemesis.verbs.step import Parties, Play, Step
from nemesis.verbs.wait import Wait
from nemesis.wire.rules import Direction, Hold, Match

REPLICAS_MIN: Final = 3
_OUT_WITHIN_S: Final = 4.0
"""Longer than a replica may lag in a quick cluster."""
_MOVE_WITHIN_S: Final = 0.5
"""The bound of a move. A move that is not granted at once would cost the unheard replicas their
place in the ISR.
"""
_PAUSES_S: Final = (0.02, 0.05, 0.1, 0.3)
_GAPS_S: Final = (0.0, 0.001, 0.005, 0.05, 0.2)
"""The times between two arrivals of held frames."""
_MOVES: Final = (1, 2, 2, 2, 3)


def drawn_relay(draw: random.Random, *, key: str, replicas: Sequence[int]) -> Play:
    """Return a relay of `key`, whose replicas are these broker numbers, the leader first."""
    assert len(replicas) >= REPLICAS_MIN, replicas
    return _Relay(draw, key, tuple(replicas)).play()


class _Relay:
    """One relay while it is drawn."""

    def __init__(self, draw: random.Random, key: str, replicas: tuple[int, ...]) -> None:
        self._draw = draw
        self._key = key
        self._replicas = replicas
        self._leader = replicas[0]
        self._out: int | None = None
        """The replica that is out of the ISR, and paused; None: no replica is."""
        self._steps: list[Step] = []
        self._laid: list[str] = []

    def play(self) -> Play:
        """Draw the whole play."""
        if self._chance(0.5):
            self._send_out(self._draw.choice(self._replicas[1:]))
        self._deafen(self._about_leader())
        self._wait(_PAUSES_S)
        for _ in range(self._draw.choice(_MOVES)):
            self._hand_on()
        self._bring_back()
        self._draw.shuffle(self._laid)
        while self._laid:
            self._lift(self._laid[0])
            self._wait(_GAPS_S)
        self._wait(_PAUSES_S)
        return tuple(self._steps)

    def _about_leader(self) -> list[tuple[int, int]]:
        """Draw the (follower, leader) pairs whose fetches do not arrive at first, if any."""
        followers = [one for one in self._replicas if one not in (self._leader, self._out)]
        count = self._draw.choice((0, 1, len(followers)))
        return [(one, self._leader) for one in self._draw.sample(followers, count)]

    def _hand_on(self) -> None:
        """Have another replica lead; draw whether and how the former leader follows."""
        before = self._leader
        others = [one for one in self._replicas if one not in (before, self._out)]
        after = self._draw.choice(others)
        if self._chance(0.4):
            third = [one for one in others if one != after]
            self._deafen([(one, before) for one in third] or [(after, before)])
            self._wait(_PAUSES_S)
        if self._chance(0.6):
            self._deafen([(before, after)])
        self._steps.append(MoveLeader(leaders={self._key: after}, within_s=_MOVE_WITHIN_S))
        self._leader = after
        if self._chance(0.5):
            self._bring_back()
        if self._laid and self._chance(0.4):
            self._lift(self._draw.choice(self._laid))
        self._wait(_PAUSES_S)

    def _deafen(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Hold what the first of each pair asks the second, or what it is answered."""
        for follower, leader in pairs:
            direction = self._draw.choice((Direction.REQUEST, Direction.RESPONSE))
            name = f"{direction}-{follower}-{leader}"
            if name in self._laid:
                continue
            self._laid.append(name)
            self._steps.append(
                Lay(
                    name=name,
                    action=Hold(),
                    match=Match(api="Fetch", direction=direction),
                    source=Parties(target=_node(follower)),
                    target=Parties(target=_node(leader)),
                )
            )

    def _lift(self, name: str) -> None:
        self._laid.remove(name)
        self._steps.append(Lift(name=name))

    def _send_out(self, number: int) -> None:
        self._out = number
        self._steps.append(Pause(target=_node(number)))
        outside = IsrMember(members={self._key: number}, inside=False)
        self._steps.append(Await(condition=outside, within_s=_OUT_WITHIN_S))

    def _bring_back(self) -> None:
        if self._out is not None:
            self._steps.append(Resume(target=_node(self._out)))
            self._out = None

    def _wait(self, choices: Sequence[float]) -> None:
        for_s = self._draw.choice(choices)
        if for_s:
            self._steps.append(Wait(for_s=for_s))

    def _chance(self, share: float) -> bool:
        return self._draw.random() < share


def _node(number: int) -> NamedNodes:
    return NamedNodes(nodes=(NodeName(f"broker-{number}"),))
