"""The library that a node preloads so that its wall clock can be wrong, and a trial of it.

`python -m fencepost.clusters.hosts.clocks.library` builds the one that comes with the project anew.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from fencepost.clusters.abilities import Skew
from fencepost.clusters.hosts import preloading
from fencepost.clusters.hosts.clocks.control import make_control, set_control
from fencepost.history.failure import HarnessError

_SOURCE: Final = Path(__file__).with_name("wrong_clock.c")
_JUMP_S: Final = -3600.0
_TIMEOUT_S: Final = 20.0


def clock_library() -> Path:
    """Return the path of this machine's library; HarnessError if it cannot be built either."""
    return preloading.library_of(_SOURCE)


def build(target: Path) -> None:
    """Build the library with the machine's C compiler. Raises HarnessError if that fails."""
    preloading.build(_SOURCE, target)


def clock_trial() -> float:
    """Return how far ahead a process found its clock, set to be an hour behind, in seconds.

    Raises HarnessError if it cannot be tried, or the clock was right.
    """
    library = clock_library()
    with tempfile.TemporaryDirectory(prefix=f"fencepost-clock-{os.getpid()}-") as directory:
        control = Path(directory) / "clock.state"
        make_control(control)
        set_control(control, Skew(jump_s=_JUMP_S), since_ns=time.time_ns())
        ahead_s = float(_said(library, control)) - time.time()
    if abs(ahead_s - _JUMP_S) > _TIMEOUT_S:
        raise HarnessError(
            f"with {library} preloaded the clock was {ahead_s:.3f} s ahead, expected {_JUMP_S} s"
        )
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


if __name__ == "__main__":
    build(preloading.came_with(_SOURCE))
    sys.stdout.write(f"{preloading.came_with(_SOURCE)}\n")
