"""The membership workload, the harness's side of it.

One client process moves the partitions of the run's topics from broker to broker, while another
workload writes and reads their records: that nothing acknowledged is lost on the way is what the
checks of records judge.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from clusters.hosts.warden import Warden
from clusters.kafka_port import keys_of
from clusters.port import NodeName
from clusters.protocol.talking import Address
from history.clock import Clock
from history.run_directory import RunDirectory
from workloads.clients.membership_config import MembershipConfig, write_membership_config
from workloads.journalled import JournalledWorkload, clients_way
from workloads.kind import Setup
from workloads.membership_spec import MembershipSpec

__all__ = ["build", "membership_workload"]

_CLIENT: Final = "membership-0"


def membership_workload(
    spec: MembershipSpec,
    *,
    warden: Warden,
    brokers: Mapping[NodeName, Address],
    broker_ids: Sequence[int],
    keys: Sequence[str],
    run: RunDirectory,
    clock: Clock,
    seed: int,
    first_process: int = 0,
) -> JournalledWorkload:
    """Return the workload of one run.

    `brokers`: each broker as clients find it; `broker_ids`: where replicas may be; `keys`: what is
    moved. `first_process`: of its movers.
    """
    config = MembershipConfig(
        client=_CLIENT,
        process=first_process,
        raw=str(run.raw.resolve()),
        origin_ns=clock.origin_ns,
        brokers=brokers,
        broker_ids=tuple(broker_ids),
        keys=tuple(keys),
        spec=spec,
        seed=seed,
    )

    def configure(path: Path) -> None:
        write_membership_config(path, config)

    return JournalledWorkload(
        _CLIENT,
        program="membership_client",
        configure=configure,
        tables=("partition_writes",),
        warden=warden,
        run=run,
    )


def build(spec: MembershipSpec, setup: Setup) -> JournalledWorkload:
    """Return the workload of a run."""
    brokers = clients_way(setup.cluster)
    return membership_workload(
        spec,
        warden=setup.warden,
        brokers=brokers,
        broker_ids=[setup.cluster.broker_id(broker) for broker in brokers],
        keys=keys_of(setup.topics),
        run=setup.run,
        clock=setup.clock,
        seed=setup.seed,
        first_process=setup.first_process,
    )
