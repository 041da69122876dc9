"""A trial of following a process of this machine, on a small one that loses its power."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from clusters.hosts.power.afterwards import lose_power, settle
from clusters.hosts.power.follower import environment
from clusters.hosts.power.library import follow_library
from history.failure import HarnessError

__all__ = ["power_trial"]

_TIMEOUT_S: Final = 20.0
_SYNCED, _UNSYNCED = b"synced, ", b"and not synced"
_WRITER: Final = f"""
import os
file = os.open("log", os.O_CREAT | os.O_WRONLY)
os.write(file, {_SYNCED!r})
os.fsync(file)
os.write(file, {_UNSYNCED!r})
"""


def power_trial() -> int:
    """Return how many bytes that it had not synced a process lost.

    Raises HarnessError if it cannot be tried, or others were lost.
    """
    library = follow_library()
    with tempfile.TemporaryDirectory(prefix="fencepost-power-") as directory:
        disk, follower = Path(directory, "disk"), Path(directory, "followed")
        disk.mkdir()
        settle(follower)
        env = environment(library, followed=disk, follower=follower)
        done = subprocess.run(
            [sys.executable, "-S", "-c", _WRITER],
            cwd=disk,
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            words = done.stderr.strip()[-200:]
            raise HarnessError(f"a process that preloads {library} fails: {words}")
        try:
            lose_power(disk, follower)
        except (OSError, ValueError) as error:
            raise HarnessError(f"what a process synced cannot be told: {error}") from error
        left = (disk / "log").read_bytes()
    if left != _SYNCED:
        raise HarnessError(f"{library} was preloaded; {_SYNCED!r} was synced, and {left!r} is left")
    return len(_UNSYNCED)
