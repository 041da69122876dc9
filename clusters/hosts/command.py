"""A command that is run to its end under a warden, with a bound, and what it said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL

from fencepost.clusters.hosts.warden import Warden
from fencepost.history.failure import HarnessError


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The exit of a command: how it ended, and what it wrote."""

    exit_code: int
    output: str
    """The text of both streams, in the order of writing."""


def run_command(
    argv: Sequence[str],
    *,
    warden: Warden,
    name: str,
    directory: Path,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
) -> Completed:
    """Run a command inside `directory`, where its output is kept as `<name>.log`.

    Raises HarnessError if it cannot be started, or has not ended after `timeout_s` (it is killed).
    """
    log = directory / f"{name}.log"
    pid = warden.spawn(argv, name=name, log=log, cwd=directory, env=env)
    code = warden.wait(pid, timeout_s=timeout_s)
    if code is None:
        warden.signal(pid, SIGKILL)
        warden.wait(pid, timeout_s=timeout_s)
        raise HarnessError(f"{name} had not ended after {timeout_s:.0f} s and was killed")
    return Completed(exit_code=code, output=log.read_text(errors="replace"))
