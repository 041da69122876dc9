"""The metadata workload, the harness's side of it.

One client process writes metadata through every broker and reads it back from every broker. Its
deeds are in its journals, never in here; there is nothing to read back in the end.
"""

from typing import Final

from fencepost.workloads.clients.metadata_config import MetadataConfig, write_metadata_config
from fencepost.workloads.journalled import JournalledWorkload, clients_way
from fencepost.workloads.kind import Setup
from fencepost.workloads.metadata_spec import MetadataSpec

_CLIENT: Final = "metadata-0"


def build(spec: MetadataSpec, setup: Setup) -> JournalledWorkload:
    """Return the workload of a run, with a logical client a writer and one a broker."""
    config = MetadataConfig(
        client=_CLIENT,
        process=setup.first_process,
        raw=str(setup.run.raw.resolve()),
        origin_ns=setup.clock.origin_ns,
        brokers=clients_way(setup.cluster),
        spec=spec,
        seed=setup.seed,
    )
    return JournalledWorkload(
        _CLIENT,
        program="metadata_client",
        configure=lambda path: write_metadata_config(path, config),
        tables=("metadata_writes", "partition_writes"),
        warden=setup.warden,
        run=setup.run,
    )
