"""The file that says how wrong a process's wall clock is, as `wrong_clock.c` reads it.

One number, which of two slots is in force, and the slots. A new setting is written into the slot
that is not in force, then put in force: whoever looks at the time meanwhile sees the old one or the
new one whole.
"""

import struct
from pathlib import Path
from typing import Final

from fencepost.clusters.abilities import Skew

RIGHT: Final = Skew()
_NUMBER: Final = struct.Struct("=q")
_SLOT: Final = struct.Struct("=5q")
_NS_A_SECOND: Final = 1_000_000_000


def make_control(path: Path) -> None:
    """A clock that is right. A process maps the file when it starts: it has to be there by then."""
    path.write_bytes(_NUMBER.pack(0) + _slot(RIGHT, since_ns=0) * 2)


def set_control(path: Path, skew: Skew, *, since_ns: int) -> None:
    """Make the clock wrong by this from now on; `since_ns`: now, by the right wall clock."""
    with path.open("r+b", buffering=0) as file:
        (in_force,) = _NUMBER.unpack(file.read(_NUMBER.size))
        file.seek(_NUMBER.size + (in_force + 1) % 2 * _SLOT.size)
        file.write(_slot(skew, since_ns=since_ns))
        file.seek(0)
        file.write(_NUMBER.pack(in_force + 1))


def _slot(skew: Skew, *, since_ns: int) -> bytes:
    return _SLOT.pack(
        since_ns,
        round(skew.jump_s * _NS_A_SECOND),
        round((skew.rate - 1) * 1_000_000),
        round(skew.strobe_s * _NS_A_SECOND),
        round(skew.every_s * _NS_A_SECOND) if skew.strobe_s else 0,
    )
