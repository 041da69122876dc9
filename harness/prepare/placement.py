"""The hosts that can take the nodes of a run; any other is refused before it is made."""

from harness.prepare.inventory_file import load_inventory
from harness.scenario.options import HostKind, RunOptions
from history.failure import UsageError

__all__ = ["refuse_unplaceable"]

_SHARE_NO_FILES = frozenset({HostKind.DOCKER, HostKind.SSH})
"""The hosts without this Python and all its packages, which nodes of our own need."""


def refuse_unplaceable(options: RunOptions) -> None:
    """Raise UsageError if the run cannot be placed on this host."""
    if options.cluster.in_virtual_time and options.host is not HostKind.LOCAL:
        raise UsageError(
            f"--host {options.host}: the nodes of --cluster {options.cluster} are no processes"
        )
    if options.host in _SHARE_NO_FILES and options.cluster.of_our_own:
        raise UsageError(f"--host {options.host} runs no nodes of our own: pass --host local")
    if options.image is not None and options.host is not HostKind.DOCKER:
        raise UsageError(f"--image is for containers, and --host {options.host} has none")
    if options.inventory is not None and options.host is not HostKind.SSH:
        raise UsageError(f"--inventory is for --host ssh, and this is --host {options.host}")
    if (why := _why_not(options.host)) is not None:
        raise UsageError(f"--host {options.host} is not possible here: {why}")
    if options.host is HostKind.SSH:
        if options.inventory is None:
            raise UsageError("--host ssh needs to know the machines: --inventory FILE")
        load_inventory(options.inventory)


def _why_not(host: HostKind) -> str | None:
    # The modules that each needs are imported when it is asked for.
    match host:
        case HostKind.NETNS:
            from clusters.hosts.namespaces import why_no_namespaces  # noqa: PLC0415

            return why_no_namespaces()
        case HostKind.DOCKER:
            from clusters.hosts.docker.host import why_no_containers  # noqa: PLC0415

            return why_no_containers()
        case _:
            return None
