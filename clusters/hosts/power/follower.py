"""One node's directory of which it is followed what was synced, wherever the node runs.

It says how a process has to be started, and has `crash_image.py` rewrite the files afterwards, on
the machine where they are.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Final

from fencepost.clusters.hosts.place import Place
from fencepost.clusters.hosts.power import crash_image
from fencepost.clusters.hosts.power.crash_image import lose_power, settle
from fencepost.clusters.hosts.power.library import follow_library
from fencepost.history.failure import HarnessError

_SCRIPT: Final = Path(crash_image.__file__)
_FOLLOWER: Final = "followed"
_TIMEOUT_S: Final = 20.0
_SYNCED, _UNSYNCED = b"synced, ", b"and not synced"
_WRITER: Final = f"""
import os
file = os.open("log", os.O_CREAT | os.O_WRONLY)
os.write(file, {_SYNCED!r})
os.fsync(file)
os.write(file, {_UNSYNCED!r})
"""


def environment(library: PurePath, *, followed: PurePath, follower: PurePath) -> dict[str, str]:
    """Return the environment in which a process is started so that it is followed."""
    return {
        "LD_PRELOAD": str(library),
        "FENCEPOST_FOLLOWED": str(followed),
        "FENCEPOST_FOLLOWER": str(follower),
    }


class DirectoryFollower:
    """The follower of the directory `followed` in a node's place. HarnessError if a method fails.

    Nothing of it is to be called while a process of the node runs.
    """

    def __init__(self, place: Place, *, followed: str) -> None:
        self._place = place
        self._followed = str(place.directory / followed)
        self._home = str(place.directory / _FOLLOWER)
        self._settled_pid: int | None = None

    def prepare(self) -> Mapping[str, str]:
        """Return what every start adds to the environment; call it before the first start."""
        library = self._place.bring(follow_library())
        return environment(library, followed=Path(self._followed), follower=Path(self._home))

    def settle(self) -> None:
        """Make all that the directory holds durable from now on."""
        self._ask("settle", self._home)
        self._settled_pid = self._place.process.pid

    def lose_power(self, *, seed: str | None) -> str:
        """Take what was not durable; what was made so before, drawn from the seed, in words."""
        answer = self._ask("lose", self._followed, self._home, *([] if seed is None else [seed]))
        if self._place.process.pid != self._settled_pid and not answer["processes"]:
            raise HarnessError(
                f"the process did not preload {follow_library()}, so its syncs are unknown"
            )
        self._settled_pid = self._place.process.pid
        return str(answer["torn"])

    def _ask(self, *arguments: str) -> dict[str, object]:
        answer = json.loads(self._place.perform(_SCRIPT, *arguments))
        assert isinstance(answer, dict)
        if "error" in answer:
            raise HarnessError(f"{self._followed}: {answer['error']}")
        return answer


def power_trial() -> int:
    """Return how many bytes that it had not synced a process lost.

    Raises HarnessError if it cannot be tried, or others were lost.
    """
    library = follow_library()
    with tempfile.TemporaryDirectory(prefix=f"fencepost-power-{os.getpid()}-") as directory:
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
            raise HarnessError(f"cannot tell what a process synced: {error}") from error
        left = (disk / "log").read_bytes()
    if left != _SYNCED:
        raise HarnessError(
            f"with {library} preloaded {_SYNCED!r} was synced, but {left!r} survived"
        )
    return len(_UNSYNCED)
