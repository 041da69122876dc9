"""Every kind of fault by the word that does it, and what each word of a play needs of a cluster."""

from collections.abc import Mapping
from typing import Final

from clusters.abilities import Pauses, Skews, Snapshots, Squeezes, Starts, Throttles, TroublesDisks
from nemesis.faults.cut_power import CUT_POWER
from nemesis.faults.disk_troubles import DISK_TROUBLES
from nemesis.faults.fault import Fault
from nemesis.faults.flip_bit import FLIP_BIT
from nemesis.faults.kill import KILL
from nemesis.faults.pause import PAUSE
from nemesis.faults.restart import RESTART
from nemesis.faults.rollback import ROLLBACK
from nemesis.faults.skew import SKEW
from nemesis.faults.squeeze import SQUEEZE
from nemesis.faults.stop import STOP
from nemesis.faults.throttle import THROTTLE
from nemesis.faults.wipe import WIPE

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
