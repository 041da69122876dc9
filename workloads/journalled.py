"""A workload that writes no records: one client process, and what it did in its journals.

It accompanies a workload of records. The harness uses it as any other: it is started, stopped and
counted. Nothing of it is read back in the end.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka_port import BrokerCluster, Role, role_of
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address
from fencepost.history.counts import ClientCounts, Counts, counts_of
from fencepost.history.failure import HarnessError
from fencepost.history.journal import journal_path
from fencepost.history.manifest import Promises
from fencepost.history.run_directory import RunDirectory
from fencepost.workloads.client_processes import ClientProcesses

_UP_S_MAX: Final = 30.0
_LOOK_S: Final = 0.02


class JournalledWorkload:
    """The workload of one run. See `workloads.port.Workload`.

    `program`: of `workloads.clients`; `configure` writes its configuration to a path; `tables`: the
    tables of events whose journals it writes, by its name.
    """

    def __init__(
        self,
        client: str,
        *,
        program: str,
        configure: Callable[[Path], None],
        tables: Sequence[str],
        warden: Warden,
        run: RunDirectory,
    ) -> None:
        self._client = client
        self._program = program
        self._configure = configure
        self._run = run
        self._processes = ClientProcesses(warden=warden, run=run)
        self._tallies = [
            JournalTally(journal_path(run.raw, table, writer=client)) for table in tables
        ]

    @property
    def promises(self) -> Promises:
        """Return the strictest promises: they are about records, of which it has none."""
        return Promises(idempotent=True, acks="all", consume="assign")

    @property
    def keys(self) -> tuple[str, ...]:
        """Return no keys: it writes no records."""
        return ()

    @property
    def pids(self) -> Mapping[str, int]:
        """The client process, once it was started."""
        return self._processes.pids

    def start(self) -> None:
        """Start the client; returns once it has recorded a write.

        Raises HarnessError with the end of its log if it does not come up.
        """
        self._configure(self._processes.config_path(self._client))
        self._processes.spawn(self._program, self._client)
        deadline_s = time.monotonic() + _UP_S_MAX
        while not self.counts().invoked:
            if failures := self.failures():
                raise HarnessError(f"a client did not come up: {failures[0]}")
            if time.monotonic() > deadline_s:
                raise HarnessError(
                    f"{self._client} wrote nothing within {_UP_S_MAX:.0f} s; see "
                    f"{self._run.clients / f'{self._client}.log'}"
                )
            time.sleep(_LOOK_S)

    def stop(self, timeout_s: float) -> None:
        """Let it finish what is under way, then end; killed after `timeout_s`. Idempotent."""
        self._processes.end(tuple(self.pids), deadline_s=time.monotonic() + timeout_s)

    def final_read(self, timeout_s: float) -> tuple[str, ...]:  # noqa: ARG002  # as the port has it
        """Return no keys: it has none."""
        return ()

    def counts(self) -> Counts:
        """Return its writes so far; cheap enough to ask many times a second."""
        parts = (tally.counts() for tally in self._tallies)
        return counts_of({self._client: sum(parts, start=ClientCounts())})

    def failures(self) -> tuple[str, ...]:
        """Return a sentence and a log tail if it ended unasked, or would not end."""
        return self._processes.failures()


def clients_way(cluster: BrokerCluster) -> dict[NodeName, Address]:
    """Return each broker's address as clients find it: over a proxy, where there is one."""
    brokers = [node for node in cluster.nodes if role_of(node) is Role.BROKER]
    servers = [server.rpartition(":") for server in cluster.bootstrap_servers.split(",")]
    return {
        broker: (host, int(port)) for broker, (host, _, port) in zip(brokers, servers, strict=True)
    }


class JournalTally:
    """Counts the events of a journal; reads what was added since it was asked last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._begun = 0
        self._ended: dict[str, int] = {}

    def counts(self) -> ClientCounts:
        """Return the counts of the journal so far."""
        for line in self._new_lines():
            self._begun += "begin" in line
            if "end" in line:
                self._ended[line["outcome"]] = self._ended.get(line["outcome"], 0) + 1
        return ClientCounts(
            invoked=self._begun,
            ok=self._ended.get("ok", 0),
            fail=self._ended.get("fail", 0),
            info=self._ended.get("info", 0),
        )

    def _new_lines(self) -> list[dict[str, Any]]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                whole, newline, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return []  # not begun, or sealed
        self._at += len(whole) + len(newline)
        return [json.loads(line) for line in whole.splitlines()]
