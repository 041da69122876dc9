"""The last starts of a run's nodes, as it writes them down for a time after its end.

Nodes of this machine's own processes and directories can be started once more from that alone:
their commands and configuration are as the run left them, whatever its play changed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import TypeAdapter, ValidationError

from fencepost.clusters.abilities import NodeStart, TellsStarts
from fencepost.clusters.port import ClusterSpec, Disks
from fencepost.clusters.system import Make
from fencepost.clusters.systems import system_of
from fencepost.harness.scenario.options import HostKind
from fencepost.history.atomic import write_atomically
from fencepost.history.failure import HarnessError
from fencepost.history.run_directory import RunDirectory
from fencepost.nemesis.wire.rules import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarts:
    """The starts of a run's nodes, and what led them over its proxy."""

    nodes: tuple[NodeStart, ...]
    """In the order in which they are started."""
    routes: Mapping[str, str]
    """The addresses at which the proxy listened, and those to which they led."""


_STARTS: Final = TypeAdapter(RunStarts)


def write_starts(run: RunDirectory, cluster: object, links: Iterable[Link]) -> None:
    """Write down how the nodes that are meant to run now were started."""
    if isinstance(cluster, TellsStarts):
        routes = {link.address: link.dials for link in links}
        content = _STARTS.dump_json(RunStarts(nodes=cluster.starts(), routes=routes), indent=2)
        write_atomically(run.starts_path, content + b"\n")


def read_starts(run: RunDirectory) -> RunStarts | None:
    """Return what was written; None if nothing was. Raises HarnessError if it cannot be read."""
    try:
        starts: RunStarts = _STARTS.validate_json(run.starts_path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HarnessError(f"cannot read {run.starts_path}: {error.strerror}") from error
    except ValidationError as error:
        raise HarnessError(
            f"{run.starts_path} is not a list of starts: {error.errors()[0]}"
        ) from error
    return starts


def why_not_again(spec: ClusterSpec, *, make: Make, host: HostKind) -> str | None:
    """Return why nodes cannot be started once more when their run has ended; None if they can."""
    if make.in_virtual_time:
        others = ", ".join(str(one) for one in system_of(spec).makes if not one.in_virtual_time)
        return f"the nodes of --cluster {make} are not processes; they are with --cluster {others}"
    if host is not HostKind.LOCAL:
        return f"the nodes of --host {host} end with their run; those of --host local can stay"
    if spec.disks is Disks.IMAGE:
        return (
            "each node has a disk of its own (disks: image), which is unmounted with the run; "
            "name other faults (--nemesis), or write disks: followed into the scenario's cluster"
        )
    return None
