"""The library that a node preloads so that what it syncs is followed.

`python -m fencepost.clusters.hosts.power.library` builds the one that comes with the project anew.
"""

import sys
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts import preloading

_SOURCE: Final = Path(__file__).with_name("follow.c")


def follow_library() -> Path:
    """Return the path of this machine's library; HarnessError if it cannot be built either."""
    return preloading.library_of(_SOURCE)


def build(target: Path) -> None:
    """Build the library with the machine's C compiler. Raises HarnessError if that fails."""
    preloading.build(_SOURCE, target)


if __name__ == "__main__":
    build(preloading.came_with(_SOURCE))
    sys.stdout.write(f"{preloading.came_with(_SOURCE)}\n")
