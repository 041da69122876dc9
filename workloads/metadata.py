"""The metadata workload, the harness's side of it.

One client process writes metadata through every broker and reads it back from every broker. What it
did is in its journals, never in here; there is nothing to read back in the end.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from clusters.hosts.warden import Warden
from clusters.kafka.asking import Address
from clusters.port import Cluster, NodeName, Role, role_of
from history.clock import Clock
from history.failure import HarnessError
from history.journal import journal_path
from history.manifest import Promises
from history.run_directory import RunDirectory
from history.segment import ClientCounts, Counts
from workloads.client_processes import ClientProcesses
from workloads.clients.metadata_config import MetadataConfig, write_metadata_config
from workloads.metadata_spec import MetadataSpec

__all__ = ["RECORDED", "MetadataSpec", "MetadataWorkload", "clients_way"]

RECORDED: Final = ("describes", "metadata_writes")
"""The tables of the cluster that this workload sets out to record."""

_CLIENT: Final = "metadata-0"
_UP_S_MAX: Final = 30.0
_LOOK_S: Final = 0.02


class MetadataWorkload:
    """The workload of one run. See `workloads.port.Workload`.

    `brokers`: each broker as clients find it. `first_process`: of its logical clients; it has one a
    writer and one a broker.
    """

    def __init__(
        self,
        spec: MetadataSpec,
        *,
        warden: Warden,
        brokers: Mapping[NodeName, Address],
        run: RunDirectory,
        clock: Clock,
        seed: int,
        first_process: int = 0,
    ) -> None:
        self._run = run
        self._processes = ClientProcesses(warden=warden, run=run)
        self._tally = _Tally(journal_path(run.raw, "metadata_writes", writer=_CLIENT))
        self._config = MetadataConfig(
            client=_CLIENT,
            process=first_process,
            raw=str(run.raw.resolve()),
            origin_ns=clock.origin_ns,
            brokers=brokers,
            spec=spec,
            seed=seed,
        )

    @property
    def promises(self) -> Promises:
        """Of records, of which it has none: the strictest."""
        return Promises(idempotent=True, acks="all", consume="assign")

    @property
    def keys(self) -> tuple[str, ...]:
        """None: its topics come and go, and hold no record."""
        return ()

    @property
    def pids(self) -> Mapping[str, int]:
        """The client process, once it was started."""
        return self._processes.pids

    def start(self) -> None:
        """Start the client; returns once a write of its was acknowledged.

        Raises HarnessError with the end of its log if it does not come up.
        """
        write_metadata_config(self._processes.config_path(_CLIENT), self._config)
        self._processes.spawn("metadata_client", _CLIENT)
        deadline_s = time.monotonic() + _UP_S_MAX
        while not self.counts().ok:
            if failures := self.failures():
                raise HarnessError(f"a client did not come up: {failures[0]}")
            if time.monotonic() > deadline_s:
                raise HarnessError(
                    f"no write of {_CLIENT} was acknowledged within {_UP_S_MAX:.0f} s; see "
                    f"{self._run.clients / f'{_CLIENT}.log'}"
                )
            time.sleep(_LOOK_S)

    def stop(self, timeout_s: float) -> None:
        """Let it finish what is under way, then end; killed after `timeout_s`. Idempotent."""
        self._processes.end(tuple(self.pids), deadline_s=time.monotonic() + timeout_s)

    def final_read(self, timeout_s: float) -> tuple[str, ...]:  # noqa: ARG002  # as the port has it
        """Nothing: it has no keys."""
        return ()

    def counts(self) -> Counts:
        """Its writes so far; cheap enough to ask many times a second."""
        mine = self._tally.counts()
        return Counts(
            invoked=mine.invoked,
            ok=mine.ok,
            fail=mine.fail,
            info=mine.info,
            by_client={_CLIENT: mine},
        )

    def failures(self) -> tuple[str, ...]:
        """A sentence and a log tail if it ended by itself, or would not end."""
        return self._processes.failures()


def clients_way(cluster: Cluster) -> dict[NodeName, Address]:
    """Each broker as clients find it: over a proxy, where there is one."""
    brokers = [node for node in cluster.nodes if role_of(node) is Role.BROKER]
    servers = [server.rpartition(":") for server in cluster.bootstrap_servers.split(",")]
    return {
        broker: (host, int(port)) for broker, (host, _, port) in zip(brokers, servers, strict=True)
    }


class _Tally:
    """Counts the events of a journal; reads what was added since it was asked last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._begun = 0
        self._ended: dict[str, int] = {}

    def counts(self) -> ClientCounts:
        """What the journal says by now."""
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
