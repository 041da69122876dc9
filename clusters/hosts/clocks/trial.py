"""A trial of telling a process of this machine a wrong time, on a small process."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from clusters.abilities import Skew
from clusters.hosts.clocks.control import make_control, set_control
from clusters.hosts.clocks.library import clock_library
from history.failure import HarnessError

__all__ = ["clock_trial"]

_JUMP_S: Final = -3600.0
_TIMEOUT_S: Final = 20.0


def clock_trial() -> float:
    """Return how far ahead a process found its clock, set to be an hour behind, in seconds.

    Raises HarnessError if it cannot be tried, or the clock was right.
    """
    library = clock_library()
    with tempfile.TemporaryDirectory(prefix="fencepost-clock-") as directory:
        control = Path(directory) / "clock.state"
        make_control(control)
        set_control(control, Skew(jump_s=_JUMP_S), since_ns=time.time_ns())
        ahead_s = float(_said(library, control)) - time.time()
    if abs(ahead_s - _JUMP_S) > _TIMEOUT_S:
        raise HarnessError(f"{library} was preloaded, and the clock was {ahead_s:.3f} s ahead")
    return ahead_s


def _said(library: Path, control: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import time; print(time.time())"],
        env={**os.environ, "LD_PRELOAD": str(library), "FENCEPOST_CLOCK": str(control)},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise HarnessError(f"a process that preloads {library} fails: {done.stderr.strip()[-200:]}")
    return done.stdout
