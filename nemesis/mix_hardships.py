"""How hard a mix makes it for nodes: amplitudes that a correct cluster survives.

*Clocks*: up to 5 s, so that whatever stands still after a clock went back, until its old time has
come again (Kafka's own timers never go back), goes on within a short run; and far less than what
records are kept for. *Processor time*: 3 % to 10 % of a core: sessions lapse at the one, and an
idle node hardly asks for more than the other. *Memory*: so little beside the heap that what is
cached and mapped is read again and again.
"""

import random
from typing import Final

from clusters.abilities import Skew
from nemesis.steps import Hardship, Room, Share

__all__ = ["HARDSHIPS", "drawn_hardship"]

HARDSHIPS: Final = ("skew", "throttle", "squeeze")
"""The kinds of episode that this draws for."""

_JUMP_S: Final = (0.5, 5.0)
_DRIFT: Final = (0.02, 0.2)
_STROBE_S: Final = (0.2, 2.0)
_EVERY_S: Final = (0.05, 0.5)
_SHARE: Final = (0.03, 0.1)
_ROOM_BYTES: Final = (4 << 20, 16 << 20)


def drawn_hardship(kind: str, draw: random.Random) -> Hardship:
    """One for an episode of this kind."""
    match kind:
        case "skew":
            return _drawn_skew(draw)
        case "throttle":
            return Share(of_a_core=round(draw.uniform(*_SHARE), 3))
        case "squeeze":
            return Room(size_bytes=draw.randint(*_ROOM_BYTES) >> 10 << 10)
        case _:
            raise AssertionError(kind)


def _drawn_skew(draw: random.Random) -> Skew:
    way, side = draw.choice(("jump", "drift", "strobe")), draw.choice((-1, 1))
    match way:
        case "jump":
            return Skew(jump_s=round(side * draw.uniform(*_JUMP_S), 3))
        case "drift":
            return Skew(rate=round(1 + side * draw.uniform(*_DRIFT), 6))
        case _:
            strobe_s = round(side * draw.uniform(*_STROBE_S), 3)
            return Skew(strobe_s=strobe_s, every_s=round(draw.uniform(*_EVERY_S), 3))
