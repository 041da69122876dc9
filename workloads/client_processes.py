"""The client processes of a workload, as the harness sees them: started, watched, ended.

Through the warden, so that none outlives the harness. Each program is
`python -m workloads.clients.<program> CONFIG.json`, and has a log of its own beside that file.
"""

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import workloads
from clusters.hosts.warden import Warden
from history.failure import HarnessError
from history.run_directory import RunDirectory
from history.segment import Counts, live_counts

__all__ = ["ClientProcesses"]

_UP_S_MAX: Final = 30.0
_KILL_S_MAX: Final = 10.0
_LOOK_S: Final = 0.02
_TAIL_LINES: Final = 5


class ClientProcesses:
    """The clients of one run, by name (`producer-0`)."""

    def __init__(self, *, warden: Warden, run: RunDirectory) -> None:
        self._warden = warden
        self._run = run
        self._pids: dict[str, int] = {}
        self._overstayed: list[str] = []

    @property
    def pids(self) -> Mapping[str, int]:
        """The processes that were started; some may have ended."""
        return dict(self._pids)

    def config_path(self, name: str) -> Path:
        """Where the configuration of a client lies: the caller writes it, then spawns."""
        return self._run.clients / f"{name}.json"

    def spawn(self, program: str, name: str) -> None:
        """Start a client whose configuration is written."""
        self._pids[name] = self._warden.spawn(
            [sys.executable, "-m", f"workloads.clients.{program}", str(self.config_path(name))],
            name=name,
            log=self._log(name),
            env=_environment(),
        )

    def named(self, role: str) -> tuple[str, ...]:
        """The clients of a role, in the order of their starts."""
        return tuple(name for name in self._pids if name.startswith(f"{role}-"))

    def has_ended(self, name: str) -> bool:
        """Whether a client's process is gone."""
        return self._warden.exit_code(self._pids[name]) is not None

    def await_operations(self) -> None:
        """Return once each client has recorded an operation.

        Raises HarnessError with the end of a client's log if that client does not come up.
        """
        deadline_s = time.monotonic() + _UP_S_MAX
        while missing := set(self._pids) - self._begun():
            if failures := self.failures():
                raise HarnessError(f"a client did not come up: {failures[0]}")
            if time.monotonic() > deadline_s:
                name = min(missing)
                raise HarnessError(
                    f"{name} did nothing within {_UP_S_MAX:.0f} s; its log ends: "
                    f"{self._log_tail(name)}"
                )
            time.sleep(_LOOK_S)

    def wait(self, names: Sequence[str], *, deadline_s: float) -> None:
        """Wait until these have ended by themselves, or until then."""
        for name in names:
            left_s = max(0.0, deadline_s - time.monotonic())
            self._warden.wait(self._pids[name], timeout_s=left_s)

    def end(self, names: Sequence[str], *, deadline_s: float) -> None:
        """SIGTERM, wait, SIGKILL."""
        for name in names:
            self._warden.signal(self._pids[name], signal.SIGTERM)
        for name in names:
            left_s = max(0.0, deadline_s - time.monotonic())
            if self._warden.wait(self._pids[name], timeout_s=left_s) is None:
                self._overstayed.append(name)
                self._warden.signal(self._pids[name], signal.SIGKILL)
                if self._warden.wait(self._pids[name], timeout_s=_KILL_S_MAX) is None:
                    raise HarnessError(
                        f"{name} (pid {self._pids[name]}) is still there {_KILL_S_MAX:.0f} s "
                        "after kill -9; is the machine's disk stuck?"
                    )

    def counts(self) -> Counts:
        """How far the clients are."""
        return live_counts(self._run.raw)

    def failures(self) -> tuple[str, ...]:
        """Clients that ended by themselves, or would not end: one sentence and log tail each."""
        ended = {name: self._warden.exit_code(pid) for name, pid in self._pids.items()}
        return tuple(
            self._obituary(name, code)
            for name, code in ended.items()
            if code is not None and (code != 0 or name in self._overstayed)
        )

    def _begun(self) -> set[str]:
        clients = self.counts().by_client.items()
        return {name for name, counts in clients if counts.invoked or counts.polls}

    def _obituary(self, name: str, code: int) -> str:
        if name in self._overstayed:
            how = "did not end when it was asked to, and was killed"
        else:
            how = f"ended with exit code {code}"
        return f"{name} (pid {self._pids[name]}) {how}; its log ends: {self._log_tail(name)}"

    def _log(self, name: str) -> Path:
        return self._run.clients / f"{name}.log"

    def _log_tail(self, name: str) -> str:
        try:
            lines = self._log(name).read_text(errors="replace").splitlines()
        except OSError as error:
            return f"({error.strerror})"
        return " | ".join(lines[-_TAIL_LINES:]) or "(nothing)"


def _environment() -> dict[str, str]:
    """The harness's own, in which clients find the packages wherever they are started."""
    root = str(Path(workloads.__file__).resolve().parents[1])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    # numpy does no linear algebra here: no threads for it.
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
