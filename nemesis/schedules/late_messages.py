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

from typing import Final

from fencepost.nemesis.schedules.deeds import (
    Catch,
    CutForm,
    CutOff,
    Event,
    HealCut,
    IsLaid,
    Lead,
    Mend,
    ReleaseRule,
    Until,
)
from fencepost.nemesis.schedules.draws import Among, EnoughNodes, same
from fencepost.nemesis.schedules.schedule import (
    Act,
    Each,
    Pick,
    Schedule,
    When,
    maybe,
    one_of,
    then,
    wait,
)
from fencepost.nemesis.schedules.scope import (
    CONTROLLER,
    ENSEMBLE,
    FOLLOWER,
    FOLLOWERS,
    LEADER,
    ONE,
)
from fencepost.nemesis.verbs.kill import Kill
from fencepost.nemesis.verbs.pause import Pause
from fencepost.nemesis.verbs.stop import ShutDown
from fencepost.nemesis.verbs.wipe import Wipe
from fencepost.nemesis.wire.rules import Operator

REPLICAS_MIN: Final = 3
LATE: Final = "late"
"""The name of the rule that the schedule is about."""
_SILENCE: Final = "silence"
_CATCH_UP: Final = "catch-up"
_OLD: Final = "old"
_BLIND: Final = "blind"
_BROKER: Final = "broker that is not the controller"
_WIPE: Final = Act(Wipe, FOLLOWER, of=(("keep_directory_id", True),))
_HOLD_CATCH_UP: Final = Catch(name=_CATCH_UP, api="Fetch", source=FOLLOWER, to=LEADER)
_JOINS: Final = wait(0.05, 0.2, 0.5)
_OTHERS: Final = Among((FOLLOWERS,), but_not=(FOLLOWER,))

LATE_FETCH: Final = then(
    Pick(FOLLOWER, Among((FOLLOWERS,))),
    one_of(*(Each(_OTHERS, Act(away, ONE)) for away in (Kill, Pause))),
    Catch(name=_SILENCE, api="BrokerHeartbeat", source=FOLLOWER),
    Each(Among((FOLLOWERS,)), Until(Event.OUT, ONE)),
    wait(0.05, 0.2, 0.5),
    Catch(name=LATE, api="Fetch", once=1.0, source=FOLLOWER, to=LEADER),
    Until(Event.HELD, LATE),
    Act(Kill, FOLLOWER),
    ReleaseRule(_SILENCE, discard=True),
    maybe(0.8, _WIPE),
    _HOLD_CATCH_UP,
    Mend(FOLLOWER),
    Until(Event.UNFENCED, FOLLOWER),
    wait(0.0, 0.05, 0.2),  # the leader hears late of its follower's return
    ReleaseRule(LATE),
    _JOINS,
    maybe(0.5, Act(Kill, LEADER), Until(Event.FENCED, LEADER)),  # the one that joined may lead now
    ReleaseRule(_CATCH_UP),
    _JOINS,
)
"""It unfolds in `Scope.around` a partition of three replicas or more; others stay away."""

_PAUSE: Final = wait(0.1, 0.3, 1.0, 3.0)
_ARRIVES: Final = When(IsLaid(LATE), then(ReleaseRule(LATE), _PAUSE))


def _cut(name: str, one: str) -> CutOff:
    return CutOff(CutForm.APART, (one, ENSEMBLE), name)


def _renewed(who: str) -> Schedule:
    """Return how a node is registered anew: its session ends, or it restarts."""
    fenced = Until(Event.FENCED, who)
    return then(
        maybe(
            0.5,
            _cut(_OLD, who),
            fenced,
            HealCut(_OLD),
            otherwise=then(one_of(Act(Kill, who), Act(ShutDown, who)), fenced, Mend(who)),
        ),
        Until(Event.UNFENCED, who),
    )


def _renewed_unheard(who: str) -> Schedule:
    """Return how it is registered anew while the controller hears nothing of ZooKeeper."""
    unheard = then(
        _cut(_BLIND, CONTROLLER),
        Act(ShutDown, who),
        Until(Event.FENCED, who),
        Mend(who),
        Until(Event.REGISTERED, who),
        wait(0.0, 0.1, 0.5),
        maybe(0.5, _ARRIVES),
        HealCut(_BLIND),
    )
    return When(same(who, CONTROLLER), _renewed(who), unheard)


def _outlived_unheard(who: str) -> Schedule:
    """Return how it outlives its session while the controller hears nothing of ZooKeeper."""
    unheard = then(
        _cut(_OLD, who),
        # The controller's session has to outlive that of the broker, which is 2 s in a quick
        # cluster.
        wait(0.5, 1.0, 1.5),
        _cut(_BLIND, CONTROLLER),
        Until(Event.FENCED, who),
        HealCut(_OLD),
        Until(Event.REGISTERED, who),
        wait(0.1, 0.3, 0.5),
        _ARRIVES,
        HealCut(_BLIND),
    )
    return When(same(who, CONTROLLER), _renewed(who), unheard)


def _isr_change(operator: Operator) -> Catch:
    return Catch(name=LATE, api="IsrChange", source=LEADER, of_key=True, isr=operator)


_HELD: Final = Until(Event.HELD, LATE)
_HEARTBEAT: Final = then(
    Catch(name=LATE, api="MetadataHeartbeat", once=1.0, source=_BROKER, to=CONTROLLER),
    _HELD,
    _renewed(_BROKER),
    _ARRIVES,
)
"""A heartbeat is overtaken by the next incarnation of its sender."""
_SHRINK: Final = then(
    _isr_change(Operator.EXCLUDES),
    CutOff(CutForm.APART, (LEADER, FOLLOWER), "lag"),
    _HELD,
    HealCut("lag"),
    maybe(
        0.5,
        Lead(FOLLOWER),
        otherwise=one_of(_renewed(LEADER), _renewed_unheard(LEADER), _outlived_unheard(LEADER)),
    ),
    _ARRIVES,
)
"""An IsrChange is overtaken by its leader's next incarnation, or by the next leader."""
_GROWTH: Final = then(
    Act(Pause, FOLLOWER),
    Until(Event.OUT, FOLLOWER),
    _isr_change(Operator.INCLUDES),
    Mend(FOLLOWER),
    _HELD,
    Act(Kill, FOLLOWER),
    Until(Event.FENCED, FOLLOWER),
    maybe(0.8, _WIPE),
    _HOLD_CATCH_UP,
    Mend(FOLLOWER),
    Until(Event.UNFENCED, FOLLOWER),
    maybe(
        0.5,
        Act(Kill, LEADER),
        _ARRIVES,
        Until(Event.FENCED, LEADER),
        ReleaseRule(_CATCH_UP),
        Mend(LEADER),
        otherwise=then(_ARRIVES, ReleaseRule(_CATCH_UP)),
    ),
)
"""An IsrChange is overtaken by the next incarnation, perhaps wiped, of the member it takes in."""
_CONTROLLERS_WORD: Final = then(
    one_of(
        *(
            Catch(name=LATE, api=api, source=CONTROLLER, to=_BROKER)
            for api in ("UpdateMetadata", "LeaderAndIsr")
        )
    ),
    Lead(FOLLOWER),
    _HELD,
    one_of(
        then(
            Act(Pause, CONTROLLER),
            Until(Event.FENCED, CONTROLLER),
            _PAUSE,
            _ARRIVES,
            Mend(CONTROLLER),
        ),
        then(
            _cut(_OLD, CONTROLLER), Until(Event.FENCED, CONTROLLER), _PAUSE, _ARRIVES, HealCut(_OLD)
        ),
        then(_renewed_unheard(_BROKER), _ARRIVES),
        then(_PAUSE, _ARRIVES),
    ),
)
"""A controller's word is overtaken by the next controller, or by a restart of its receiver."""
_NOT_THE_CONTROLLER: Final = Among((FOLLOWERS,), but_not=(CONTROLLER,))
LATE_WORD: Final = then(
    # A broker that does not hear of the controller does nothing of interest.
    When(
        EnoughNodes(_NOT_THE_CONTROLLER),
        Pick(FOLLOWER, _NOT_THE_CONTROLLER),
        otherwise=Pick(FOLLOWER, Among((FOLLOWERS,))),
    ),
    Pick(_BROKER, Among((LEADER, FOLLOWER), but_not=(CONTROLLER,))),
    one_of(
        (1, _HEARTBEAT),
        (2, _SHRINK),
        (2, _GROWTH),
        (2, _CONTROLLERS_WORD),
        (1, then(_renewed_unheard(_BROKER), _PAUSE)),
    ),
)
"""It unfolds in `Scope.around` a partition, with the broker that is the controller."""
