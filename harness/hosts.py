"""The host that a run's nodes are placed on, as the options ask for it."""

from typing import assert_never

from clusters.hosts.ledger import Ledger
from clusters.hosts.local_host import LocalHost
from clusters.hosts.place import Host
from clusters.hosts.warden import Warden
from harness.options import HostKind, RunOptions
from history.failure import UsageError

__all__ = ["host_of", "refuse_unplaceable"]


def host_of(options: RunOptions, *, warden: Warden, ledger: Ledger) -> Host:
    """The host, with nothing of it made yet: that begins when it is entered."""
    match options.host:
        case HostKind.LOCAL:
            return LocalHost(warden, ledger=ledger)
        case _:
            assert_never(options.host)


def refuse_unplaceable(options: RunOptions) -> None:
    """UsageError if what is to run cannot be placed on this host."""
    if options.cluster.in_virtual_time and options.host is not HostKind.LOCAL:
        raise UsageError(
            f"--host {options.host}: the nodes of --cluster {options.cluster} are no processes"
        )
