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

from typing import Final

from fencepost.nemesis.schedules.deeds import (
    Catch,
    Event,
    Lead,
    Mend,
    ReleaseAll,
    ReleaseOne,
    Until,
)
from fencepost.nemesis.schedules.draws import Among, AnyOf, EnoughNodes
from fencepost.nemesis.schedules.schedule import (
    NOTHING,
    Act,
    Again,
    Each,
    Name,
    OneOf,
    Pick,
    When,
    maybe,
    one_of,
    then,
    wait,
)
from fencepost.nemesis.schedules.scope import DOWN, FOLLOWERS, LEADER, ONE, REPLICAS
from fencepost.nemesis.verbs.pause import Pause

REPLICAS_MIN: Final = 3
_OUT: Final = "replica that is out of the ISR"
_NEXT: Final = "next leader"
_OUT_WITHIN_S: Final = 4.0
"""Longer than a replica may lag in a quick cluster."""
_MOVE_WITHIN_S: Final = 0.5
"""The bound of a move. A move that is not granted at once would cost the unheard replicas their
place in the ISR.
"""
_PAUSE: Final = wait(0.02, 0.05, 0.1, 0.3)
_GAP: Final = one_of(NOTHING, *map(wait, (0.001, 0.005, 0.05, 0.2)))
"""The time between two arrivals of held frames."""


def _deafened(follower: str, leader: str) -> OneOf:
    """Return what holds all that a follower asks a leader, or all that it is answered."""
    return one_of(
        Catch(api="Fetch", source=follower, to=leader),
        Catch(api="Fetch", source=follower, to=leader, answers=1.0),
    )


_DEAF: Final = "deaf followers"
_OTHERS: Final = Among((REPLICAS,), but_not=(LEADER, DOWN))
_THIRDS: Final = Among((REPLICAS,), but_not=(LEADER, DOWN, _NEXT))
_HAND_ON: Final = then(
    Pick(_NEXT, _OTHERS),
    maybe(
        0.4,
        When(
            EnoughNodes(_THIRDS),
            Each(_THIRDS, _deafened(ONE, LEADER)),
            otherwise=_deafened(_NEXT, LEADER),
        ),
        _PAUSE,
    ),
    maybe(0.6, _deafened(LEADER, _NEXT)),
    Lead(_NEXT, _MOVE_WITHIN_S),
    Name(LEADER, Among((_NEXT,))),
    maybe(0.5, Mend(_OUT)),
    ReleaseOne(0.4),
    _PAUSE,
)
RELAY: Final = then(
    maybe(
        0.5,
        Pick(_OUT, Among((FOLLOWERS,))),
        Act(Pause, _OUT),
        Until(Event.OUT, _OUT, _OUT_WITHIN_S),
    ),
    Pick(_DEAF, _OTHERS, count=AnyOf((0, 1, 99))),
    Each(Among((_DEAF,)), _deafened(ONE, LEADER)),
    _PAUSE,
    Again(_HAND_ON, AnyOf((1, 2, 2, 2, 3))),
    Mend(_OUT),
    ReleaseAll(shuffled=True, then=_GAP),
    _PAUSE,
)
"""It unfolds in `Scope.around` a partition of three replicas or more."""
