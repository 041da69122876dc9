"""The storms of trials as schedules: those around one partition, chaos, and what follows notes.

Faults at random times rarely hit the millisecond between a vote and its answer. So in a storm on
the quorum, what nodes note for the oracle is followed, with some chance, by a strike on the very
node that noted it, at once or a moment later; it comes back soon. Only what the network and the
disks have then counts.

In a *regicidal* trial mostly new leaders are struck, before any other node has what they appended,
so that logs diverge again and again; otherwise any node that notes something, now and then.
While a leader commits what its predecessors left, all controllers may go down at once, as in a rack
that loses its power: what one of them alone has, and what two have, is then what the next election
is about.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fencepost.clusters.node_port import notes
from fencepost.clusters.port import ClusterSpec
from fencepost.harness.scenario.trial_spec import Storm, TrialSpec
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.nemesis.schedules import late_messages, relays
from fencepost.nemesis.schedules.chaos import chaos
from fencepost.nemesis.schedules.deeds import CutForm, CutOff, HealCut, Mend
from fencepost.nemesis.schedules.draws import Among, Between, GiveOrTakeHalf
from fencepost.nemesis.schedules.printed import printed, printed_mix
from fencepost.nemesis.schedules.schedule import (
    Act,
    Again,
    Name,
    Pick,
    Schedule,
    WaitFor,
    maybe,
    one_of,
    then,
    wait,
)
from fencepost.nemesis.schedules.scope import BROKERS, CONTROLLERS, ONE, STRUCK
from fencepost.nemesis.schedules.windows import window
from fencepost.nemesis.verbs.cut_power import CutPower
from fencepost.nemesis.verbs.kill import Kill
from fencepost.nemesis.verbs.pause import Pause


@dataclass(frozen=True, slots=True)
class PlayStorm:
    """A storm of plays, one after the other, each around a partition."""

    schedule: Schedule
    replicas_min: int = 2


PLAY_STORMS: Final[Mapping[Storm, PlayStorm]] = {
    Storm.WINDOWS: PlayStorm(window()),
    Storm.RELAYS: PlayStorm(relays.RELAY, relays.REPLICAS_MIN),
    Storm.LATE_FETCHES: PlayStorm(late_messages.LATE_FETCH, late_messages.REPLICAS_MIN),
    Storm.LATE_WORDS: PlayStorm(late_messages.LATE_WORD),
}


@dataclass(frozen=True, slots=True)
class Reaction:
    """What follows a note: it names the nodes to strike, if any, and strikes each of them."""

    whom: Schedule
    strike: Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Reactions:
    """The reactions of a storm on the quorum."""

    noted: Mapping[str, Reaction]
    """By what is noted."""
    inherited: Reaction
    """When a leader commits what others appended, or the first record of its own."""


_ITSELF: Final = Name(STRUCK, Among((ONE,)))
_ALL_CONTROLLERS: Final = Name(STRUCK, Among((CONTROLLERS,)))


def _strike(delays_s: tuple[float, ...], ways: Schedule, away_s: tuple[float, ...]) -> Schedule:
    return then(wait(*delays_s), ways, WaitFor(GiveOrTakeHalf(away_s)), Mend(STRUCK))


def _reactions(
    chances: Mapping[str, float],
    *,
    inherited: float,
    blackout: float,
    delays_s: tuple[float, ...],
    ways: Schedule,
    away_s: tuple[float, ...],
) -> Reactions:
    """`blackout`: the share of the strikes at an inheritance that hits all controllers."""
    later, at_once = (_strike(delays, ways, away_s) for delays in (delays_s, (0.0,)))
    whom = maybe(inherited, maybe(blackout, _ALL_CONTROLLERS, otherwise=_ITSELF))
    noted = {note: Reaction(maybe(chance, _ITSELF), later) for note, chance in chances.items()}
    return Reactions(noted=noted, inherited=Reaction(whom, at_once))


_KILL, _PAUSE, _CUT_POWER = (Act(step, STRUCK) for step in (Kill, Pause, CutPower))
RESTLESS: Final = _reactions(
    {
        notes.VOTED: 0.25,
        notes.QUORUM_LEADER: 0.35,
        notes.APPENDED_METADATA: 0.02,
        notes.ACTIVE: 0.1,
    },
    inherited=0.4,
    blackout=0.0,
    delays_s=(0.0, 0.0005, 0.002, 0.01),
    ways=one_of((2, _CUT_POWER), (1, _KILL), (1, _PAUSE)),
    away_s=(0.02, 0.1, 0.4, 1.2),
)
REGICIDAL: Final = _reactions(
    {notes.QUORUM_LEADER: 0.6, notes.APPENDED_METADATA: 0.01},
    inherited=0.5,
    blackout=0.8,
    delays_s=(0.0, 0.0, 0.0005),
    ways=one_of((3, _KILL), (1, _CUT_POWER)),
    away_s=(0.03, 0.3, 0.45),
)

LAGGARD: Final = "laggard"
"""The name of the partition by which a broker is told nothing."""
LAGGARDS: Final = Again(
    then(
        WaitFor(Between(0.2, 1.0)),
        Pick(ONE, Among((BROKERS,))),
        CutOff(CutForm.ONE_WAY, (CONTROLLERS, ONE), LAGGARD),
        WaitFor(Between(0.3, 1.6)),  # shorter than a lease of a quick cluster
        HealCut(LAGGARD),
    )
)
"""One broker after the other is told nothing by the controllers, for a while."""


def printed_schedules(
    spec: TrialSpec, *, mix: MixSpec | None, cluster: ClusterSpec
) -> dict[str, str]:
    """Return the schedules of such a trial, printed, each by what it is or follows."""
    found = {name: printed(schedule) for name, schedule in _schedules_of(spec).items()}
    if spec.storm is Storm.MIX and mix is not None:
        found[str(spec.storm)] = printed_mix(mix, nodes=cluster.nodes, roles=cluster.node_roles)
    return found


def _schedules_of(spec: TrialSpec) -> dict[str, Schedule]:
    found: dict[str, Schedule] = {}
    if spec.storm in PLAY_STORMS:
        found[str(spec.storm)] = PLAY_STORMS[spec.storm].schedule
    if spec.storm in (Storm.CHAOS, Storm.QUORUM):
        found["chaos"] = chaos(spec.wipes)
    if spec.storm is Storm.QUORUM:
        reactions = REGICIDAL if spec.regicidal else RESTLESS
        noted = {f"upon {note}": one for note, one in reactions.noted.items()}
        noted["upon the first commit of a leader"] = reactions.inherited
        found |= {name: then(one.whom, one.strike) for name, one in noted.items()}
    if spec.laggards:
        found["laggards"] = LAGGARDS
    return found
