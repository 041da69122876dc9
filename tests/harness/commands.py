"""How a command of ours ended, as tests ask for it; the fixture `fencepost` runs one."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost.history.run_directory import RunDirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def said(self) -> dict[str, Any]:
        """The one run that `--json` tells of."""
        assert self.stdout, self.stderr
        (said,) = json.loads(self.stdout)
        found: dict[str, Any] = said
        return found

    @property
    def run(self) -> RunDirectory:
        return RunDirectory(Path(self.said["run"]))

    @property
    def violated(self) -> set[str]:
        """The checks that are invalid."""
        return {name for name, one in self.said["checks"].items() if one["validity"] == "invalid"}


Fencepost = Callable[..., Ended]
