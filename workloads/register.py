"""The register workload, the harness's side of it.

Client processes read and write znodes; what they did is in their journals, never in here. In the
end one reader a server, connected to that server alone, reads every key behind a sync.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.warden import Warden
from fencepost.history.clock import Clock
from fencepost.history.counts import Counts, counts_of
from fencepost.history.journal import journal_path
from fencepost.history.manifest import Promises
from fencepost.history.run_directory import RunDirectory
from fencepost.workloads.client_processes import ClientProcesses
from fencepost.workloads.clients.register_config import RegisterConfig, write_register_config
from fencepost.workloads.generators.znodes import znode_keys
from fencepost.workloads.journalled import JournalTally
from fencepost.workloads.kind import Setup
from fencepost.workloads.register_spec import RegisterSpec

_PROGRAM: Final = "register_client"
_TABLE: Final = "znode_operations"
_SLACK_S: Final = 5.0


class RegisterWorkload:
    """The workload of one run. See `workloads.port.Workload`.

    `servers`: the client ports of the ensemble, `host:port`. `first_process`: of its logical
    clients, of which those of one client process stand a stride apart.
    """

    def __init__(
        self,
        spec: RegisterSpec,
        *,
        warden: Warden,
        servers: tuple[str, ...],
        run: RunDirectory,
        clock: Clock,
        seed: int,
        first_process: int = 0,
    ) -> None:
        self._spec = spec
        self._servers = servers
        self._run = run
        self._clock = clock
        self._seed = seed
        self._first_process = first_process
        self._processes = ClientProcesses(warden=warden, run=run, counts=self.counts)
        self._tallies: dict[str, JournalTally] = {}

    @property
    def promises(self) -> Promises:
        """Return the promises to its clients."""
        return self._spec.promises

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the paths of its znodes."""
        lasting, deleted = znode_keys(self._spec.keys, deleted_share=self._spec.deleted_share)
        return (*lasting, *deleted)

    @property
    def clients(self) -> ClientProcesses:
        """The client processes, to be paused and crashed."""
        return self._processes

    @property
    def pids(self) -> Mapping[str, int]:
        """The client processes that were started, by name; some may have ended."""
        return self._processes.pids

    def start(self) -> None:
        """Start every client; returns once each of them has recorded an operation.

        Raises HarnessError with the end of a client's log if that client does not come up.
        """
        for number in range(self._spec.clients):
            self._spawn(self._config(f"register-{number}", number))
        self._processes.await_operations()

    def stop(self, timeout_s: float) -> None:
        """Let the clients finish what is under way, then end; killed after that. Idempotent."""
        names = self._processes.named("register")
        self._processes.end(names, deadline_s=time.monotonic() + timeout_s)

    def final_read(self, timeout_s: float) -> tuple[str, ...]:
        """Read every key on every server; return the keys that each server returned."""
        deadline_s = time.monotonic() + timeout_s
        deadline_ns = self._clock.now_ns() + int((timeout_s - _SLACK_S) * 1e9)
        readers = [
            replace(
                self._config(f"final-{place}", self._spec.clients + place),
                servers=(server,),
                result=str((self._run.clients / f"final-{place}.result.json").resolve()),
                deadline_ns=deadline_ns,
            )
            for place, server in enumerate(self._servers)
        ]
        for reader in readers:
            self._spawn(reader)
        names = [reader.client for reader in readers]
        self._processes.wait(names, deadline_s=deadline_s)
        self._processes.end(names, deadline_s=deadline_s)
        complete = [_complete(Path(reader.result)) for reader in readers]
        return tuple(key for key in self.keys if all(key in one for one in complete))

    def counts(self) -> Counts:
        """Return the counts of all clients so far; cheap enough to ask many times a second."""
        for path in self._run.raw.glob(journal_path(Path(), _TABLE, writer="*").name):
            name = path.name.removeprefix(f"{_TABLE}.").removesuffix(".jsonl")
            self._tallies.setdefault(name, JournalTally(path))
        by_client = {name: tally.counts() for name, tally in self._tallies.items()}
        return counts_of(by_client)

    def failures(self) -> tuple[str, ...]:
        """Return a sentence and a log tail for each client that ended unasked, or would not end."""
        return self._processes.failures()

    def _config(self, client: str, number: int) -> RegisterConfig:
        first = number % len(self._servers)
        return RegisterConfig(
            client=client,
            number=number,
            process=self._first_process + number,
            process_stride=self._spec.clients + len(self._servers),
            raw=str(self._run.raw.resolve()),
            origin_ns=self._clock.origin_ns,
            servers=self._servers[first:] + self._servers[:first],
            spec=self._spec,
            seed=self._seed,
        )

    def _spawn(self, config: RegisterConfig) -> None:
        write_register_config(self._processes.config_path(config.client), config)
        self._processes.spawn(_PROGRAM, config.client)


def _complete(result: Path) -> frozenset[str]:
    """Return the keys that a final reader says it read; none, if it died first."""
    try:
        return frozenset(json.loads(result.read_text())["complete"])
    except (OSError, ValueError):
        return frozenset()


def build(spec: RegisterSpec, setup: Setup) -> RegisterWorkload:
    """Return the workload of a run."""
    return RegisterWorkload(
        spec,
        warden=setup.warden,
        servers=tuple(setup.cluster.client_addresses()),
        run=setup.run,
        clock=setup.clock,
        seed=setup.seed,
        first_process=setup.first_process,
    )
