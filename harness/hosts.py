"""The host that a run's nodes are placed on, as the options ask for it."""

from typing import assert_never

from clusters.cache import Progress
from clusters.hosts.docker.host import DockerHost
from clusters.hosts.ledger import Ledger
from clusters.hosts.local_host import LocalHost
from clusters.hosts.namespaces import NamespaceHost
from clusters.hosts.place import Host
from clusters.hosts.warden import Warden
from clusters.kafka.files_read import files_read
from clusters.kafka.prepared import Prepared
from harness.options import ClusterKind, HostKind, RunOptions
from history.failure import UsageError

__all__ = ["host_of", "refuse_unplaceable"]


def host_of(
    options: RunOptions,
    prepared: Prepared | None,
    *,
    run_id: str,
    warden: Warden,
    ledger: Ledger,
    say: Progress,
) -> Host:
    """The host, with nothing of it made yet: that begins when it is entered.

    `prepared`: what nodes of Kafka are made of; None: they are the reference cluster's.
    """
    match options.host:
        case HostKind.LOCAL:
            return LocalHost(warden, ledger=ledger)
        case HostKind.NETNS:
            return NamespaceHost(warden, ledger=ledger)
        case HostKind.DOCKER:
            assert prepared is not None, "refused before"
            return DockerHost(
                run_id=run_id,
                ledger=ledger,
                readable=files_read(prepared),
                image=options.image,
                progress=say,
            )
        case _:
            assert_never(options.host)


def refuse_unplaceable(options: RunOptions) -> None:
    """UsageError if what is to run cannot be placed on this host."""
    if options.cluster.in_virtual_time and options.host is not HostKind.LOCAL:
        raise UsageError(
            f"--host {options.host}: the nodes of --cluster {options.cluster} are no processes"
        )
    if options.host is HostKind.DOCKER and options.cluster is not ClusterKind.KAFKA:
        raise UsageError("--host docker runs Kafka; nodes of our own run without: --host local")
    if options.image is not None and options.host is not HostKind.DOCKER:
        raise UsageError(f"--image is for containers, and --host {options.host} has none")
