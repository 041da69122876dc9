"""Processes of ours: `python -m fencepost.history.program MODULE …` runs a module as `-m` does.

kio, which names the messages of Kafka, looks for hypothesis, for tests of its own. Where that is
installed it took a third of a process's start, and left a directory in the working directory.
"""

import os
import runpy
import sys
from pathlib import Path
from typing import Final

from fencepost.history.beat import BEATS_VARIABLE, begin_beat

IMPORT_ROOT: Final = Path(__file__).absolute().parents[2]
"""The directory in which processes of ours find `fencepost`. In a checkout this module's own path
leads through a link (decision 77), so it is not resolved."""


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module in a process of its own."""
    return [sys.executable, "-m", __name__, module, *arguments]


def without_hypothesis() -> None:
    """Make hypothesis unknown to this process, unless it is imported already."""
    # An import of what is None here fails as that of a package that is not installed.
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]


if __name__ == "__main__":
    without_hypothesis()
    if path := os.environ.pop(BEATS_VARIABLE, ""):
        begin_beat(Path(path))
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
