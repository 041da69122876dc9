"""The client processes of a workload, as the harness sees them: started, watched, ended.

They run through the warden, so that none outlives the harness. Each program is `python -m
workloads.clients.<program> CONFIG.json`, and its log lies in the same folder as that file.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.port import NodeState
from fencepost.history.beat import BEATS_VARIABLE
from fencepost.history.counts import ClientCounts, Counts, live_counts
from fencepost.history.failure import HarnessError
from fencepost.history.program import IMPORT_ROOT, command
from fencepost.history.run_directory import RunDirectory
from fencepost.workloads.clients.config import (
    ConsumerConfig,
    FinalReaderConfig,
    ProducerConfig,
    write_config,
)

_UP_S_MAX: Final = 30.0
_KILL_S_MAX: Final = 10.0
_LOOK_S: Final = 0.02
_CONSUMER_STOP_S: Final = 9.0
"""The time to poll the last sends, and to leave the group."""
_TAIL_LINES: Final = 5


class ClientProcesses:
    """The clients of one run, by name (`producer-0`)."""

    def __init__(
        self, *, warden: Warden, run: RunDirectory, counts: Callable[[], Counts] | None = None
    ) -> None:
        """`counts` of all clients; None: they record into segments."""
        self._warden = warden
        self._run = run
        self._counts = counts or (lambda: live_counts(run.raw))
        self._pids: dict[str, int] = {}
        self._programs: dict[str, str] = {}
        self._overstayed: list[str] = []

    @property
    def pids(self) -> Mapping[str, int]:
        """The processes that were started; some may have ended."""
        return dict(self._pids)

    def config_path(self, name: str) -> Path:
        """Return the path of a client's configuration: the caller writes it, then spawns."""
        return self._run.clients / f"{name}.json"

    def spawn(self, program: str, name: str) -> None:
        """Start a client whose configuration is written."""
        self._programs[name] = program
        self._pids[name] = self._warden.spawn(
            command(f"workloads.clients.{program}", str(self.config_path(name))),
            name=name,
            log=self._log(name),
            env={**_environment(), BEATS_VARIABLE: str(self._run.clients / f"{name}.beat")},
        )

    def spawn_configured(
        self, program: str, config: ProducerConfig | ConsumerConfig | FinalReaderConfig
    ) -> None:
        """Write the configuration of a client of records, and start it."""
        name = config.common.client
        write_config(self.config_path(name), config)
        self.spawn(program, name)

    def named(self, role: str) -> tuple[str, ...]:
        """Return the clients of a role, in the order of their starts."""
        return tuple(name for name in self._pids if name.startswith(f"{role}-"))

    def has_ended(self, name: str) -> bool:
        """Return whether a client's process is gone."""
        return self._warden.exit_code(self._pids[name]) is not None

    def pause(self, name: str) -> str:
        """Send SIGSTOP and return the evidence of it. Leases and transactions run out meanwhile."""
        pid = self._running(name)
        self._warden.signal(pid, signal.SIGSTOP, group=True)
        self._await(lambda: self._is_paused(pid), f"{name} (pid {pid}) did not stop")
        return f"{name} (pid {pid}): every thread is stopped"

    def resume(self, name: str) -> str:
        """Send SIGCONT and return the evidence of it."""
        pid = self._running(name)
        self._warden.signal(pid, signal.SIGCONT, group=True)
        self._await(lambda: not self._is_paused(pid), f"{name} (pid {pid}) did not go on")
        return f"{name} (pid {pid}) goes on"

    def crash(self, name: str) -> str:
        """Kill -9, and start a new process that records as another client; return the evidence.

        Operations that were open stay open in the record: it may have happened.
        """
        pid = self._running(name)  # a JVM that it started ends with it
        counts = self._counts_of(name)
        self._warden.signal(pid, signal.SIGKILL, group=True)
        if self._warden.wait(pid, timeout_s=_KILL_S_MAX) is None:
            raise HarnessError(f"{name} (pid {pid}) is still there after kill -9")
        open_count = counts.invoked - counts.ok - counts.fail - counts.info
        earlier = len(self._records_of(name))
        path = self.config_path(name)
        path.write_text(json.dumps(_followed(json.loads(path.read_text()), earlier)))
        self.spawn(self._programs[name], name)
        return f"{name} (pid {pid}): killed with SIGKILL, about {open_count:,} sends open"

    def come_back(self, name: str) -> str:
        """Wait until the latest process has recorded an operation; return the evidence."""
        config = json.loads(self.config_path(name).read_text())
        new = f"{name}.{_earlier_of(config)}"
        self._await(lambda: new in self._begun(), f"{name} did nothing after its crash", _UP_S_MAX)
        return f"pid {self._pids[name]} goes on as {new}"

    def _is_paused(self, pid: int) -> bool:
        return self._warden.state(pid) is NodeState.PAUSED

    def _running(self, name: str) -> int:
        if name not in self._pids or self.has_ended(name):
            raise HarnessError(f"no client {name} runs; there are: {', '.join(self._pids)}")
        return self._pids[name]

    def _records_of(self, name: str) -> set[str]:
        """Return the names under which processes of this client have recorded."""
        found = self.counts().by_client
        return {one for one in found if one == name or one.startswith(f"{name}.")}

    def _counts_of(self, name: str) -> ClientCounts:
        found = self.counts().by_client
        return sum((found[one] for one in self._records_of(name)), ClientCounts())

    def _await(
        self, reached: Callable[[], bool], otherwise: str, limit_s: float = _KILL_S_MAX
    ) -> None:
        deadline_s = time.monotonic() + limit_s
        while not reached():
            if time.monotonic() > deadline_s:
                raise HarnessError(f"{otherwise} within {limit_s:.0f} s")
            time.sleep(_LOOK_S)

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
        """Wait until these have ended unasked, or until then."""
        for name in names:
            left_s = max(0.0, deadline_s - time.monotonic())
            self._warden.wait(self._pids[name], timeout_s=left_s)

    def finish(self, names: Sequence[str], *, deadline_s: float) -> None:
        """Wait for these to end unasked; end them when time is up."""
        self.wait(names, deadline_s=deadline_s)
        self.end(names, deadline_s=deadline_s)

    def end_in_turn(self, timeout_s: float) -> None:
        """End the producers, then the consumers, so that the last sends are polled like the others.

        Each finishes what is in flight; what is left after `timeout_s` is killed. Idempotent.
        """
        deadline_s = time.monotonic() + timeout_s
        producers, consumers = map(self.named, ("producer", "consumer"))
        self.end(producers, deadline_s=deadline_s - _CONSUMER_STOP_S)
        self.end(consumers, deadline_s=deadline_s)

    def read_back(
        self, readers: Sequence[FinalReaderConfig], *, deadline_s: float
    ) -> frozenset[str]:
        """Have final readers read; return the keys that they read whole. Producers have ended."""
        for name in self.named("producer"):
            assert self.has_ended(name), f"{name} still runs"
        for reader in readers:
            self.spawn_configured("final_reader", reader)
        self.finish([reader.common.client for reader in readers], deadline_s=deadline_s)
        return frozenset(key for reader in readers for key in listed(reader.result, "complete"))

    def end(self, names: Sequence[str], *, deadline_s: float) -> None:
        """Send SIGTERM, wait, then send SIGKILL."""
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
        """Return the counts of the clients' operations so far."""
        return self._counts()

    def failures(self) -> tuple[str, ...]:
        """Return a sentence and a log tail for each client that ended unasked, or would not end."""
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


def listed(result: str, name: str) -> tuple[str, ...]:
    """Return the list of this name that a client wrote as its result; empty, if it died first."""
    try:
        return tuple(json.loads(Path(result).read_text())[name])
    except (OSError, ValueError):
        return ()


def _followed(config: Any, earlier: int) -> Any:
    """Return a configuration in which every client takes over from `earlier` logical clients."""
    if not isinstance(config, dict):
        return config
    changed = {key: _followed(value, earlier) for key, value in config.items()}
    return changed | {"earlier": earlier} if "process_stride" in config else changed


def _earlier_of(config: Any) -> int:
    """Return the number that `_followed` gave it."""
    inner = (_earlier_of(value) for value in config.values() if isinstance(value, dict))
    return max((int(config.get("earlier", 0)), *inner))


def _environment() -> dict[str, str]:
    """Return the harness's own environment, with the packages on the path from any directory."""
    root = str(IMPORT_ROOT)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    # numpy does no linear algebra here: no threads for it.
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
