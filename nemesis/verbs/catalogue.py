"""Every kind of fault by the word that does it, and what each word of a play needs of a cluster."""

from collections.abc import Mapping
from typing import Final

from clusters.abilities import Pauses, Skews, Snapshots, Squeezes, Starts, Throttles, TroublesDisks
from nemesis.verbs.cut_power import CUT_POWER
from nemesis.verbs.disk_troubles import DISK_TROUBLES
from nemesis.verbs.fault import Fault
from nemesis.verbs.flip_bit import FLIP_BIT
from nemesis.verbs.kill import KILL
from nemesis.verbs.pause import PAUSE
from nemesis.verbs.restart import RESTART
from nemesis.verbs.rollback import ROLLBACK
from nemesis.verbs.skew import SKEW
from nemesis.verbs.squeeze import SQUEEZE
from nemesis.verbs.stop import STOP
from nemesis.verbs.throttle import THROTTLE
from nemesis.verbs.wipe import WIPE

__all__ = ["ABILITIES", "FAULTS"]

FAULTS: Final[Mapping[str, Fault]] = {
    fault.name: fault
    for fault in (
        *(KILL, STOP, RESTART, PAUSE, WIPE, ROLLBACK, CUT_POWER),
        *DISK_TROUBLES,
        FLIP_BIT,
        *(SKEW, THROTTLE, SQUEEZE),
    )
}

ABILITIES: Final[Mapping[str, tuple[type, ...]]] = {
    **{fault.name: fault.abilities for fault in FAULTS.values()},
    "start": (Starts,),
    "resume": (Pauses,),
    "snapshot": (Snapshots,),
    "mend_disk": (TroublesDisks,),
    "unskew": (Skews,),
    "unthrottle": (Throttles,),
    "unsqueeze": (Squeezes,),
}
