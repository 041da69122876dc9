"""Faults without mercy: no wait for the cluster to recover, and no budget that spares a majority.

A mix leaves the cluster able to serve, so that clients see much; chaos looks for the schedules that
no mix would draw: the second fault while the first one is being mended, a voter without power just
after its vote, every node down at once. The caller that judges the run has to excuse what chaos
loses by design (the only disk that had a record).

A *spell* is a stretch of time with one idea of what goes wrong, so that faults that belong together
come together: only controllers, only the replicas of one key, only the network, or anything. Chaos
unfolds without end, over the nodes of a scene, with a wait after each step.
"""

from typing import Final

from fencepost.nemesis.schedules.deeds import CutForm, CutOff, HasCuts, HealCut, Mend
from fencepost.nemesis.schedules.draws import (
    Among,
    AnyOf,
    Between,
    Chance,
    Drawn,
    Either,
    EnoughNodes,
    Every,
    Exactly,
    Exponential,
    Not,
)
from fencepost.nemesis.schedules.partitions import partition
from fencepost.nemesis.schedules.schedule import (
    Act,
    Again,
    Lasting,
    Let,
    Name,
    NamedPart,
    Pick,
    PickEach,
    Schedule,
    UseDrawn,
    WaitFor,
    When,
    maybe,
    one_of,
    then,
)
from fencepost.nemesis.schedules.scope import BROKERS, CONTROLLERS, DOWN, NODES, ONE
from fencepost.nemesis.verbs.cut_power import CutPower
from fencepost.nemesis.verbs.kill import Kill
from fencepost.nemesis.verbs.pause import Pause
from fencepost.nemesis.verbs.stop import ShutDown
from fencepost.nemesis.verbs.wipe import Wipe

_PARTITIONS_MAX: Final = 2
_SPAN: Final = "span"
_GAP: Final = "mean gap"
_MENDS: Final = "share of mends"
_CUTS: Final = "share of the network"
_STRIKE: Final = "strike"
_AMONG: Final = "nodes of the spell"
_RECEIVER: Final = "receiver"
_CHAOS: Final = "chaos"


def chaos(wipes: float = 0.1) -> Schedule:
    """Return chaos without end, over the nodes of its scope; it does not heal.

    `wipes`: the share of crashes of brokers that cost records: the disk is empty, or what was not
    synced is gone.
    """
    is_broker = EnoughNodes(Among((ONE,), only=(BROKERS,)))
    wipe = Act(Wipe, ONE, of=(("keep_directory_id", True),))
    kill = NamedPart("kill", then(Act(Kill, ONE), When(Every((is_broker, Chance(wipes))), wipe)))
    # Several brokers without power at once lose records by design: that is for few.
    spared = maybe(wipes, Act(CutPower, ONE), otherwise=kill)
    power = NamedPart("power cut", When(is_broker, spared, otherwise=Act(CutPower, ONE)))
    pause = Act(Pause, ONE)
    restart = then(Act(ShutDown, ONE), Mend(ONE))  # it comes back at once: a rolling restart
    strikes = (
        one_of(kill, power, pause, restart),
        one_of((2, kill), (1, power)),
        one_of(pause),
        one_of(power),
    )
    return Again(_spell(strikes))


def _spell(strikes: tuple[Schedule, ...]) -> Schedule:
    among = one_of(
        Name(_AMONG, Among((CONTROLLERS,))),
        Name(_AMONG, Among((BROKERS,))),
        Pick(_AMONG, Among((NODES,)), count=Exactly(2)),
        Name(_AMONG, Among((NODES,))),
    )
    broken, whole = Among((_AMONG,), only=(DOWN,)), Among((_AMONG,), but_not=(DOWN,))
    mends = Either((Chance(Drawn(_MENDS)), Not(EnoughNodes(whole))))
    step = When(
        Chance(Drawn(_CUTS)),
        _ON_THE_NETWORK,
        otherwise=When(
            Every((EnoughNodes(broken), mends)),
            then(Pick(ONE, broken), Mend(ONE)),
            otherwise=When(EnoughNodes(whole), then(Pick(ONE, whole), UseDrawn(_STRIKE))),
        ),
    )
    return then(
        Let(_SPAN, Between(0.5, 3.0)),
        Let(_GAP, AnyOf((0.03, 0.1, 0.3, 0.8))),
        Let(_MENDS, AnyOf((0.3, 0.5, 0.7))),
        Let(_CUTS, AnyOf((0.0, 0.1, 0.3, 0.8))),
        Let(_STRIKE, AnyOf(strikes)),
        among,
        Lasting(then(step, WaitFor(Exponential(Drawn(_GAP)))), Drawn(_SPAN)),
    )


_ON_THE_NETWORK: Final = When(
    Every((HasCuts(1), Either((HasCuts(_PARTITIONS_MAX), Chance(Drawn(_MENDS)))))),
    HealCut(),
    otherwise=maybe(
        0.4,
        PickEach((ONE, _RECEIVER), Among((NODES,))),
        CutOff(CutForm.ONE_WAY, (ONE, _RECEIVER), _CHAOS, numbered=True),
        otherwise=partition(_CHAOS, numbered=True),
    ),
)
