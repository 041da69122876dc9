"""The membership workload, the harness's side of it.

One client process moves the partitions of the run's topics from broker to broker, while another
workload writes and reads their records: that nothing acknowledged is lost on the way is what the
checks of records judge.
"""

from typing import Final

from fencepost.clusters.topic_spec import keys_of
from fencepost.workloads.clients.membership_config import MembershipConfig, write_membership_config
from fencepost.workloads.journalled import JournalledWorkload, clients_way
from fencepost.workloads.kind import Setup
from fencepost.workloads.membership_spec import MembershipSpec

_CLIENT: Final = "membership-0"


def build(spec: MembershipSpec, setup: Setup) -> JournalledWorkload:
    """Return the workload of a run, which moves the keys of its topics among all brokers."""
    brokers = clients_way(setup.cluster)
    config = MembershipConfig(
        client=_CLIENT,
        process=setup.first_process,
        raw=str(setup.run.raw.resolve()),
        origin_ns=setup.clock.origin_ns,
        brokers=brokers,
        broker_ids=tuple(setup.cluster.broker_id(broker) for broker in brokers),
        keys=keys_of(setup.topics),
        spec=spec,
        seed=setup.seed,
    )
    return JournalledWorkload(
        _CLIENT,
        program="membership_client",
        configure=lambda path: write_membership_config(path, config),
        tables=("partition_writes",),
        warden=setup.warden,
        run=setup.run,
    )
