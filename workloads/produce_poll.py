"""The produce-poll workload, the harness's side of it.

Producers write unique values to every key, consumers read them, and in the end every key is read
back whole. Here their configurations are written, and they are started, watched and ended through
the warden. What they did is in their segments, never in here.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import workloads
from clusters.hosts.warden import Warden
from clusters.port import TopicSpec
from history.clock import Clock
from history.failure import HarnessError
from history.manifest import Promises
from history.run_directory import RunDirectory
from history.segment import Counts, live_counts
from workloads.client_plan import ClientPlan
from workloads.clients.config import (
    ConsumerConfig,
    FinalReaderConfig,
    ProducerConfig,
    write_config,
)
from workloads.produce_poll_spec import Consume, ProducePollSpec

__all__ = ["Consume", "ProducePoll", "ProducePollSpec"]

_UP_S_MAX: Final = 30.0
_CONSUMER_STOP_S: Final = 9.0
"""To poll what was sent last, and to leave the group."""
_KILL_S_MAX: Final = 10.0
_READER_SLACK_S: Final = 2.0
"""For a final reader to end, after it gave up."""
_LOOK_S: Final = 0.02
_TAIL_LINES: Final = 5


class ProducePoll:
    """The workload of one run. See `workloads.port.Workload`."""

    def __init__(
        self,
        spec: ProducePollSpec,
        *,
        warden: Warden,
        bootstrap_servers: str,
        topics: Sequence[TopicSpec],
        run: RunDirectory,
        clock: Clock,
        seed: int,
    ) -> None:
        self._spec = spec
        self._warden = warden
        self._run = run
        self._clock = clock
        self._plan = ClientPlan(
            spec=spec,
            bootstrap_servers=bootstrap_servers,
            keys=tuple(key for topic in topics for key in topic.keys),
            run=run,
            origin_ns=clock.origin_ns,
            seed=seed,
        )
        self._pids: dict[str, int] = {}
        self._overstayed: list[str] = []

    @property
    def promises(self) -> Promises:
        """What its clients are configured to be promised."""
        return self._spec.promises

    @property
    def keys(self) -> tuple[str, ...]:
        """What it writes to and reads: every key of its topics."""
        return self._plan.keys

    @property
    def pids(self) -> Mapping[str, int]:
        """The client processes that were started, by name; some may have ended."""
        return dict(self._pids)

    def start(self) -> None:
        """Start consumers, then producers; returns once each has recorded an operation.

        Raises HarnessError with the end of a client's log if that client does not come up.
        """
        for consumer in self._plan.consumers():
            self._spawn("consumer", consumer)
        for producer in self._plan.producers():
            self._spawn("producer", producer)
        self._await_operations()

    def stop(self, timeout_s: float) -> None:
        """End the producers, then the consumers, so that the last sends are polled like the others.

        Each finishes what is in flight; what is left after `timeout_s` is killed. Idempotent.
        Producers need the spec's message time-out to learn the end of every send.
        """
        deadline_s = time.monotonic() + timeout_s
        self._end(self._named("producer"), deadline_s=deadline_s - _CONSUMER_STOP_S)
        self._end(self._named("consumer"), deadline_s=deadline_s)

    def final_read(self, timeout_s: float) -> tuple[str, ...]:
        """Read every key from its first to its last offset; the keys of which this was done.

        After `stop`, once: the end of a key is only known when no producer can write to it.
        """
        for name in self._named("producer"):
            assert self._warden.exit_code(self._pids[name]) is not None, f"{name} still runs"
        deadline_s = time.monotonic() + timeout_s
        deadline_ns = self._clock.now_ns() + int((timeout_s - _READER_SLACK_S) * 1e9)
        configs = self._plan.final_readers(deadline_ns=deadline_ns)
        for config in configs:
            self._spawn("final_reader", config)
        for config in configs:
            left_s = max(0.0, deadline_s - time.monotonic())
            self._warden.wait(self._pids[config.common.client], timeout_s=left_s)
        self._end([config.common.client for config in configs], deadline_s=deadline_s)
        complete = {key for config in configs for key in _complete(Path(config.result))}
        return tuple(key for key in self._plan.keys if key in complete)

    def counts(self) -> Counts:
        """How far the clients are; cheap enough to ask many times a second."""
        return live_counts(self._run.raw)

    def failures(self) -> tuple[str, ...]:
        """Clients that ended by themselves, or would not end: one sentence and log tail each."""
        ended = {name: self._warden.exit_code(pid) for name, pid in self._pids.items()}
        return tuple(
            self._obituary(name, code)
            for name, code in ended.items()
            if code is not None and (code != 0 or name in self._overstayed)
        )

    def _spawn(
        self, program: str, config: ProducerConfig | ConsumerConfig | FinalReaderConfig
    ) -> None:
        name = config.common.client
        config_path = self._run.clients / f"{name}.json"
        write_config(config_path, config)
        self._pids[name] = self._warden.spawn(
            [sys.executable, "-m", f"workloads.clients.{program}", str(config_path)],
            name=name,
            log=self._log(name),
            env=_environment(),
        )

    def _await_operations(self) -> None:
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

    def _begun(self) -> set[str]:
        clients = self.counts().by_client.items()
        return {name for name, counts in clients if counts.invoked or counts.polls}

    def _end(self, names: Sequence[str], *, deadline_s: float) -> None:
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

    def _named(self, role: str) -> tuple[str, ...]:
        return tuple(name for name in self._pids if name.startswith(f"{role}-"))

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


def _complete(result: Path) -> tuple[str, ...]:
    """What a final reader says it read; of one that died first, nothing."""
    try:
        return tuple(json.loads(result.read_text())["complete"])
    except (OSError, ValueError):
        return ()
