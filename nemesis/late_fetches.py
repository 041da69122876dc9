"""Random plays in which a follower's Fetch arrives after the follower has died and come back.

A leader judges a follower by its Fetches, and a Fetch outlives its sender in the buffers of the
network. The follower is fenced, so that it is out of the ISR and has all records nevertheless: its
heartbeats are held. With a third replica away, too few are in sync for any write, so that
the end of the log stands still. Then one Fetch is held, which asks for that very end; its sender
dies, loses its disk, and is registered and unfenced anew. What it fetches now is held as well, and
the old Fetch arrives. A leader that knows of the new registration, and does not ask which one the
Fetch is of, takes an empty replica for one that has everything (KIP-903).

Like a window, it is a play that can be stored, replayed and run on any cluster with a wire.
"""

import random
from collections.abc import Sequence
from typing import Final

from clusters.kafka_conditions import Fenced, IsrMember
from clusters.observation import Condition, Held
from clusters.port import NodeName
from nemesis.targets import NamedNodes
from nemesis.verbs.await_condition import Await
from nemesis.verbs.kill import Kill
from nemesis.verbs.lift import Lift
from nemesis.verbs.pause import Pause
from nemesis.verbs.rule import Lay
from nemesis.verbs.start import Start
from nemesis.verbs.step import Parties, Play, Step
from nemesis.verbs.wait import Wait
from nemesis.verbs.wipe import Wipe
from nemesis.wire.rules import Hold, Match

__all__ = ["REPLICAS_MIN", "drawn_late_fetch"]

REPLICAS_MIN: Final = 3
_WITHIN_S: Final = 6.0
"""A bound of every await: longer than a session of a quick cluster."""
_CATCHES_UP_S: Final = (0.05, 0.2, 0.5)
_HEARS_S: Final = (0.0, 0.05, 0.2)
"""The times from the follower's return to the arrival of its old Fetch: the leader hears of it
late.
"""
_JOINS_S: Final = (0.05, 0.2, 0.5)
_SILENCE: Final = "silence"
_LATE: Final = "late"
_CATCH_UP: Final = "catch-up"


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
    return NamedNodes(nodes=(NodeName(f"broker-{number}"),))
