"""The metadata workload, the harness's side of it.

One client process writes metadata through every broker and reads it back from every broker. What it
did is in its journals, never in here; there is nothing to read back in the end.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from clusters.hosts.warden import Warden
from clusters.port import NodeName
from clusters.protocol.talking import Address
from history.clock import Clock
from history.run_directory import RunDirectory
from workloads.clients.metadata_config import MetadataConfig, write_metadata_config
from workloads.journalled import JournalledWorkload, clients_way
from workloads.kind import Setup
from workloads.metadata_spec import MetadataSpec

__all__ = ["build", "metadata_workload"]

_CLIENT: Final = "metadata-0"


def metadata_workload(
    spec: MetadataSpec,
    *,
    warden: Warden,
    brokers: Mapping[NodeName, Address],
    run: RunDirectory,
    clock: Clock,
    seed: int,
    first_process: int = 0,
) -> JournalledWorkload:
    """Return the workload of one run.

    `brokers`: each broker as clients find it. `first_process`: of its logical clients; it has one a
    writer and one a broker.
    """
    config = MetadataConfig(
        client=_CLIENT,
        process=first_process,
        raw=str(run.raw.resolve()),
        origin_ns=clock.origin_ns,
        brokers=brokers,
        spec=spec,
        seed=seed,
    )

    def configure(path: Path) -> None:
        write_metadata_config(path, config)

    return JournalledWorkload(
        _CLIENT,
        program="metadata_client",
        configure=configure,
        tables=("metadata_writes", "partition_writes"),
        warden=warden,
        run=run,
    )


def build(spec: MetadataSpec, setup: Setup) -> JournalledWorkload:
    """Return the workload of a run."""
    return metadata_workload(
        spec,
        warden=setup.warden,
        brokers=clients_way(setup.cluster),
        run=setup.run,
        clock=setup.clock,
        seed=setup.seed,
        first_process=setup.first_process,
    )
