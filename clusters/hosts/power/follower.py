"""One node's directory of which it is followed what was synced, wherever the node runs.

What a process has to be started with, and what is then done to the files by `afterwards.py`, which
is run where they are.
"""

import json
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Final

from clusters.hosts.place import Place
from clusters.hosts.power import afterwards
from clusters.hosts.power.library import follow_library
from history.failure import HarnessError

__all__ = ["DirectoryFollower", "environment"]

_SCRIPT: Final = Path(afterwards.__file__)
_FOLLOWER: Final = "followed"


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
                f"the process did not preload {follow_library()}: what it synced is not known"
            )
        self._settled_pid = self._place.process.pid
        return str(answer["torn"])

    def _ask(self, *arguments: str) -> dict[str, object]:
        answer = json.loads(self._place.perform(_SCRIPT, *arguments))
        assert isinstance(answer, dict)
        if "error" in answer:
            raise HarnessError(f"{self._followed}: {answer['error']}")
        return answer
