"""The options of a run, apart from what its scenario says."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fencepost.clusters.system import Make
from fencepost.clusters.systems import KAFKA


class HostKind(StrEnum):
    """The kind of place in which the nodes run."""

    LOCAL = "local"
    """The nodes are processes of this machine, on its loopback."""
    NETNS = "netns"
    """The nodes are processes of this machine, each with a network namespace and an address."""
    DOCKER = "docker"
    """The nodes are in containers, one each, on a network of the run."""
    SSH = "ssh"
    """The nodes are on machines of the user's, which an inventory names."""

    @property
    def has_networks(self) -> bool:
        """True if each node has a network of its own on this machine, where packets are dropped."""
        return self in (HostKind.NETNS, HostKind.DOCKER)

    @property
    def shares_files(self) -> bool:
        """True if its nodes see all files of this machine."""
        return self in (HostKind.LOCAL, HostKind.NETNS)

    @property
    def shares_clock(self) -> bool:
        """True if its nodes have the wall clock of this machine."""
        return self is not HostKind.SSH


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run; the scenario says what to run."""

    results: Path
    seed: int
    command: str
    """The command line that repeats this run, its seed included."""
    keep_data: bool = False
    """Keep the nodes' data also if the run is valid."""
    keeps_running: bool = False
    """Start its nodes once more if its verdict is invalid."""
    alongside: bool = False
    """Run although another run is under way on this machine."""
    port_base: int | None = None
    """The first of the ports that nodes listen on; None: any free ones."""
    spark_master: str = "local[*]"
    cluster: Make = KAFKA
    host: HostKind = HostKind.LOCAL
    image: str | None = None
    """The image of the containers; None: a small Debian of Fencepost's own."""
    inventory: Path | None = None
    """The file that says which machines there are."""
    without_rules: tuple[str, ...] = ()
    """The rules that the reference cluster is not to keep, by their names."""
    wire: bool = True
    """Lead the links between the nodes over the proxy, which tapes what the control plane says."""
