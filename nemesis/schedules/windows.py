"""Schedules of one pattern, in which protocols break: the message that matters is held.

A replica leaves the ISR and comes back; the moment the message of interest is sent, that very
message is held; a party of it is struck (its sender, its subject, the controller it goes to, a
third); something is done upon an event of the protocol; the message arrives upon another. Faults at
random times hardly ever meet such a window, even with the right message held: what ties the steps
together is that each waits for what the protocol does, not for a time.

A window unfolds into a play like any other: it can be stored, replayed, shrunk, and run on any
cluster that has a wire. Its awaits are short: a window that does not open is given up.

The message may be given. What happens first is then what makes a node send it: a follower is out of
the ISR and comes back, or is not heard any more; a broker restarts; the active controller falls.
What was struck comes back before the play ends; what an election took down, with the heal.
"""

from collections.abc import Callable, Mapping
from typing import Final

from fencepost.nemesis.schedules.deeds import (
    ActOnController,
    Catch,
    CutForm,
    CutOff,
    Event,
    HealCut,
    Lead,
    Mend,
    ReleaseAll,
    ReleaseRule,
    Until,
)
from fencepost.nemesis.schedules.draws import (
    Among,
    Chance,
    Drawn,
    EnoughNodes,
    Every,
    MixDraws,
    Not,
    is_down,
    same,
)
from fencepost.nemesis.schedules.schedule import (
    NOTHING,
    Act,
    Name,
    NamedPart,
    OneOf,
    Option,
    Pick,
    Schedule,
    When,
    maybe,
    one_of,
    then,
    wait,
)
from fencepost.nemesis.schedules.scope import (
    BROKERS,
    CONTROLLER,
    DOWN,
    FOLLOWER,
    FOLLOWERS,
    LEADER,
    ONE,
    STRUCK,
    THIRD,
)
from fencepost.nemesis.verbs.cut_power import CutPower
from fencepost.nemesis.verbs.kill import Kill
from fencepost.nemesis.verbs.pause import Pause
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.stop import ShutDown
from fencepost.nemesis.verbs.wipe import Wipe
from fencepost.nemesis.wire.rules import Action, Duplicate, Hold, Operator, Reorder, Watch

WINDOW: Final = "window"
"""The name of the rule that a window is about."""
_DEAF: Final = "deaf"
_CATCH_UP: Final = "catch-up"

_PARTIES: Final = then(
    Pick(FOLLOWER, Among((FOLLOWERS,))),
    Pick(THIRD, Among((BROKERS,), but_not=(LEADER, FOLLOWER))),
)
_VICTIM: Final = Pick(
    STRUCK, Among((FOLLOWER, FOLLOWER, FOLLOWER, FOLLOWER, LEADER, LEADER, CONTROLLER, THIRD))
)
_WIPE: Final = Act(Wipe, STRUCK, of=(("keep_directory_id", True),))
_KILL: Final = then(Act(Kill, STRUCK), maybe(0.6, When(same(STRUCK, FOLLOWER), _WIPE)))
"""The follower alone loses its disk, or its power: records that the last member of the ISR loses
are lost for good."""
_PAUSE: Final = Act(Pause, STRUCK)
_STOP: Final = Act(ShutDown, STRUCK)
_CUT_POWER: Final = When(same(STRUCK, FOLLOWER), Act(CutPower, STRUCK), _KILL)
WINDOW_STRIKES: Final = one_of(_KILL, _PAUSE, _STOP, _CUT_POWER)
"""The ways to strike a party."""
MIX_STRIKES: Final = OneOf(
    (
        Option(_KILL, 3),  # a node that loses its disk was killed: that is what most strikes are
        Option(_PAUSE),
        Option(_STOP),
        Option(_CUT_POWER, given=MixDraws("cut_power")),
    )
)
"""The same in a mix: what nodes of any cluster can suffer; power is cut where it cuts power, too.
"""


def _strike(broker: Schedule) -> Schedule:
    """Return a strike on the struck node, if it is whole."""
    controller = one_of(ActOnController(Kill), ActOnController(Pause))
    is_broker = EnoughNodes(Among((STRUCK,), only=(BROKERS,)))
    strike = When(is_down(STRUCK), NOTHING, When(is_broker, broker, controller))
    return NamedPart("strike", strike)


_COMES_BACK: Final = then(
    Pick(STRUCK, Among((DOWN,))),
    maybe(0.7, Until(Event.FENCED, STRUCK)),
    When(
        Every((Not(same(STRUCK, LEADER)), Chance(0.6))),
        Catch(name=_CATCH_UP, api="Fetch", source=STRUCK, to=LEADER),
    ),
    Mend(STRUCK),
    maybe(0.2, Until(Event.REGISTERED, STRUCK), otherwise=Until(Event.UNFENCED, STRUCK)),
)
_SECOND_ACT: Final = When(
    EnoughNodes(Among((DOWN,))),
    When(Chance(0.15), NOTHING, otherwise=NamedPart("a struck node comes back", _COMES_BACK)),
)
"""Upon an event, the one that was struck comes back, perhaps without catching up."""
_AFTERMATH: Final = NamedPart(
    "aftermath",
    then(
        When(Every((is_down(LEADER), Chance(0.8))), Until(Event.FENCED, LEADER)),
        ReleaseAll(),
        wait(0.1, 0.5, 1.0),
        Mend(DOWN),
    ),
)
_A_WHILE: Final = wait(0.5, 2.0, 4.0)

_Catches = Callable[[Operator], Schedule]
"""Returns the rule for an AlterPartition by which the follower joins, or leaves; for any other
message the same."""


def _caught(message: str, action: Action | Drawn, *, once: float = 0.5) -> _Catches:
    of_requests = isinstance(action, Duplicate | Reorder)

    def catch(isr: Operator) -> Schedule:
        answers = {"Fetch": 0.6}.get(message, 0.2)
        alters = message == "AlterPartition"
        return Catch(
            name=WINDOW,
            api=message,
            action=action,
            source=LEADER if alters else FOLLOWER,
            to=LEADER if message == "Fetch" else None,
            of_key=alters,
            isr=isr if alters else None,
            isr_share=0.7,
            answers=0.0 if of_requests else answers,
            once=once,
        )

    return catch


def _met(action: Action | Drawn) -> Schedule:
    """Return the wait for the message."""
    return Until(Event.HELD if isinstance(action, Hold) else Event.SEEN, WINDOW)


def _departures(catch: _Catches, met: Schedule) -> Mapping[str, Schedule]:
    """Return the ways in which the follower leaves the ISR so that the message is sent."""
    out = Until(Event.OUT, FOLLOWER)
    joins, back = catch(Operator.INCLUDES), Mend(FOLLOWER)
    deaf = Catch(name=_DEAF, api="Fetch", source=FOLLOWER, to=LEADER)
    cut = CutOff(CutForm.ISOLATED, (FOLLOWER,), "cut")
    return {
        "stay": then(joins, met),
        "pause": then(Act(Pause, FOLLOWER), out, joins, back, met),
        "kill": then(Act(Kill, FOLLOWER), out, joins, back, met),
        "cut": then(cut, out, joins, HealCut("cut"), met),
        "deaf": then(deaf, out, joins, ReleaseRule(_DEAF), met),
        "shrink": then(catch(Operator.EXCLUDES), deaf, met),
    }


_WAYS: Final[Mapping[str, Mapping[str, int]]] = {
    "": {"pause": 2, "kill": 1, "cut": 1, "stay": 1},
    "AlterPartition": {"pause": 2, "kill": 1, "cut": 1, "deaf": 1, "shrink": 1},
    "BrokerRegistration": {"kill": 1},
    "BrokerHeartbeat": {"stay": 1, "pause": 1, "kill": 1},
    "Fetch": {"stay": 1, "pause": 1, "kill": 1, "cut": 1},
}
"""The ways in which the follower leaves before each message, by weight; of any message: ""."""
_ANY: Final[Mapping[str, int]] = {
    "AlterPartition": 4,
    "BrokerRegistration": 1,
    "BrokerHeartbeat": 1,
    "Fetch": 2,
}
"""The messages of a window of any message: the ISR is where most windows are."""
_FALLS: Final[Mapping[str, tuple[type[OnNodes], ...]]] = {
    "Vote": (Kill, Pause, ShutDown),
    "BeginQuorumEpoch": (Kill, Pause, ShutDown),
    "EndQuorumEpoch": (ShutDown,),
}
"""The messages between controllers, and how the active one falls so that they are sent."""


def _opening(message: str | None, action: Action | Drawn, ways: Mapping[str, int]) -> Schedule:
    """Return what has the message sent, and met by the rule."""
    catch = _caught(message or "", action)
    if message is None:
        each = {name: _caught(name, action) for name in _ANY}

        def catch(isr: Operator) -> Schedule:
            return one_of(*((weight, each[name](isr)) for name, weight in _ANY.items()))

    departures = _departures(catch, _met(action))
    return OneOf(tuple(Option(departures[way], weight) for way, weight in ways.items()))


def _election(message: str, action: Action | Drawn) -> Schedule:
    """Return what has a message between controllers sent, and met by the rule."""
    answers = 0.0 if isinstance(action, Duplicate | Reorder) else 0.3

    def catch(once: float) -> Schedule:
        return Catch(name=WINDOW, api=message, action=action, answers=answers, once=once)

    falls = one_of(*map(ActOnController, _FALLS[message]))
    return then(maybe(0.5, catch(1.0), otherwise=catch(0.0)), falls, _met(action))


def window(
    message: str | None = None,
    *,
    strikes: Schedule = WINDOW_STRIKES,
    passes: bool = False,
) -> Schedule:
    """Return a window; it unfolds in `Scope.around` a partition.

    `message`: the API to hold; None: any. `passes`: an ambush: the message is seen and passed on.
    """
    action = Watch() if passes else Hold()
    strike = _strike(strikes)
    if message is not None and message in _FALLS:
        course = then(
            maybe(0.5, _VICTIM, strike),
            maybe(0.5, _A_WHILE),
            maybe(0.7, ReleaseRule(WINDOW)),  # without an election no node comes back
            _SECOND_ACT,
            _AFTERMATH,
        )
        return then(
            _PARTIES, _election(message, action), NamedPart("course of an election", course)
        )
    moved = then(Pick(ONE, Among((FOLLOWERS,))), Lead(ONE))
    course = then(
        maybe(0.15, moved, otherwise=then(_VICTIM, strike)),
        _SECOND_ACT,
        maybe(0.6, Name(STRUCK, Among((LEADER,))), strike, maybe(0.3, _SECOND_ACT)),
        ReleaseRule(WINDOW),
        _AFTERMATH,
    )
    opening = _opening(message, action, _WAYS[message or ""])
    return then(_PARTIES, opening, NamedPart("course of a window", course))


def message_fault(message: str, action: Action | Drawn) -> Schedule:
    """Return a schedule that does this to messages of one kind, and strikes nothing."""
    if message in _FALLS:
        opening = _election(message, action)
    else:
        # A message that is sent all the time takes no departure.
        ways = _WAYS[message]
        opening = _opening(message, action, {"stay": 1} if "stay" in ways else ways)
    return then(_PARTIES, opening, _A_WHILE, ReleaseAll())
