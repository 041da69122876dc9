"""The wall clock of a node: what its process starts with, and how it is put wrong and right again.

Nothing counts that the process itself does not say: each call returns once the process was asked
what time it is and said so, and what it said is the evidence. A node that is down is not asked; its
next start finds the clock as it was left.
"""

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from fencepost.clusters.abilities import Skew
from fencepost.clusters.hosts.clocks.attach import ClockReading
from fencepost.clusters.hosts.clocks.control import RIGHT, make_control, set_control
from fencepost.clusters.hosts.clocks.library import clock_library
from fencepost.history.clock import ClockSkew
from fencepost.history.failure import HarnessError

_EFFECT_TIMEOUT_S: Final = 15.0
_POLL_S: Final = 0.037
"""The wait between looks, no divisor of a strobe's usual period: looks must see both sides."""
_CLEAR_NS: Final = 20_000_000
"""The lead that is clearly more than the error of a look."""
_NS_A_SECOND: Final = 1_000_000_000


class NodeClock:
    """The wall clock of one node; not thread-safe.

    `directory`: the node's own, which its process sees at the same path. `now_ns`: the run's clock.
    """

    def __init__(self, node: str, *, directory: Path, now_ns: Callable[[], int]) -> None:
        self._node = node
        self._library = directory / "clock.so"
        self._control = directory / "clock.state"
        self._now_ns = now_ns
        self._skews: list[ClockSkew] = []
        self._begun: tuple[int, Skew] | None = None

    def prepare(self) -> Mapping[str, str]:
        """Return what a start adds to the environment; call it before the first start."""
        self._control.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(clock_library(), self._library)
        make_control(self._control)
        return {"LD_PRELOAD": str(self._library), "FENCEPOST_CLOCK": str(self._control)}

    def put_wrong(self, skew: Skew, read: Callable[[], ClockReading]) -> str:
        """Put it wrong by this; evidence from the process. HarnessError if it does not show."""
        self._end_skew()
        self._begun = (self._now_ns(), skew)
        set_control(self._control, skew, since_ns=time.time_ns())
        return f"{self._node}: {_seen(skew, read)}"

    def put_right(self, read: Callable[[], ClockReading] | None) -> str:
        """Put it right; `read` None: its process cannot be asked. HarnessError if it is wrong."""
        set_control(self._control, RIGHT, since_ns=0)
        self._end_skew()
        if read is None:
            return f"{self._node}: its clock is right once it runs"
        looks = _looks(read, lambda seen: abs(seen[-1].ahead_ns) <= seen[-1].doubt_ns + _CLEAR_NS)
        return f"{self._node}: its clock is right, {_said(looks[-1])}"

    def skews(self) -> tuple[ClockSkew, ...]:
        """Return when it was wrong and by how much at most, up to now."""
        return (*self._skews, *self._open_skew())

    def _end_skew(self) -> None:
        self._skews += self._open_skew()
        self._begun = None

    def _open_skew(self) -> list[ClockSkew]:
        if self._begun is None:
            return []
        (from_ns, skew), until_ns = self._begun, self._now_ns()
        least_s, most_s = skew.bounds_s((until_ns - from_ns) / _NS_A_SECOND)
        return [
            ClockSkew(
                node=self._node,
                from_ns=from_ns,
                until_ns=until_ns,
                ahead_min_ns=round(least_s * _NS_A_SECOND),
                ahead_max_ns=round(most_s * _NS_A_SECOND),
            )
        ]


def _seen(skew: Skew, read: Callable[[], ClockReading]) -> str:
    """Look until it shows, and say what was seen."""
    if skew.strobe_s:
        looks = _looks(read, lambda seen: _strobes(seen, skew))
        first, last = min(looks, key=_ahead), max(looks, key=_ahead)
        return f"its clock goes back and forth, {_said(first)}, then {_said(last)}"
    if skew.rate != 1:
        looks = _sharp(_looks(read, lambda seen: _drifts(_sharp(seen), skew)))
        pace = f"its clock runs at {skew.rate:g} times its pace"
        return f"{pace}, {_said(looks[0])}, then {_said(looks[-1])}"
    looks = _looks(read, lambda seen: _jumped(seen[-1], skew))
    return f"its clock jumped, {_said(looks[-1])}"


def _looks(
    read: Callable[[], ClockReading], enough: Callable[[list[ClockReading]], bool]
) -> list[ClockReading]:
    """Look until that is enough. HarnessError, with the last look, if it never is."""
    deadline = time.monotonic() + _EFFECT_TIMEOUT_S
    seen = [read()]
    while not enough(seen):
        if time.monotonic() > deadline:
            raise HarnessError(
                f"the node's clock does not show the skew that was set: {_said(seen[-1])}"
            )
        time.sleep(_POLL_S)
        seen.append(read())
    return seen


def _jumped(look: ClockReading, skew: Skew) -> bool:
    return abs(look.ahead_ns - skew.jump_s * _NS_A_SECOND) <= look.doubt_ns + _CLEAR_NS


def _drifts(seen: list[ClockReading], skew: Skew) -> bool:
    """Return whether it has moved, clearly and in the right direction, since the first look."""
    if not seen:
        return False
    gain_ns = (seen[-1].ahead_ns - seen[0].ahead_ns) * (1 if skew.rate > 1 else -1)
    return gain_ns > _CLEAR_NS + seen[0].doubt_ns + seen[-1].doubt_ns


def _strobes(seen: list[ClockReading], skew: Skew) -> bool:
    """Return whether it was seen on either side."""
    sides = {abs(look.ahead_ns) > abs(skew.strobe_s) * _NS_A_SECOND / 2 for look in seen}
    return len(sides) > 1


def _sharp(seen: list[ClockReading]) -> list[ClockReading]:
    """The looks that were quickly answered."""
    return [look for look in seen if look.doubt_ns <= _CLEAR_NS]


def _ahead(look: ClockReading) -> int:
    return look.ahead_ns


def _said(look: ClockReading) -> str:
    ahead_s, doubt_ms = look.ahead_ns / _NS_A_SECOND, look.doubt_ns / 1_000_000
    side = "ahead of" if ahead_s >= 0 else "behind"
    return f"by its own word {abs(ahead_s):.3f} s {side} the machine's (± {doubt_ms:.1f} ms)"
