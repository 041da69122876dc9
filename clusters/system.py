"""A system that Fencepost can break: what its clusters are, who makes them, what its runs hold.

Everything here is read with a scenario, before anything heavy is imported; a make's driver is
imported when a cluster of it is prepared. `clusters.systems` is the registry.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fencepost.clusters.abilities import Links
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.observation import Parse
from fencepost.clusters.port import Cluster, ClusterSpec, NodeName, Observable
from fencepost.clusters.processes.networks import IsAnswered
from fencepost.clusters.provision.java import Java
from fencepost.clusters.targets import DescribedTarget

if TYPE_CHECKING:
    from fencepost.clusters.provision.release_line import ReleaseLine

Say = Callable[[str], None]


class Prepared(Protocol):
    """All that has to be there before a cluster's first process starts."""

    @property
    def java(self) -> Java:
        """The Java for the checks, and for nodes that are JVMs."""

    @property
    def version(self) -> str:
        """The release whose expectations hold of it."""

    @property
    def level(self) -> int | None:
        """The protocol's level that a cluster of our own starts with; None: it is not our own."""

    @property
    def files_read(self) -> tuple[Path, ...]:
        """The files of this machine that nodes read outside their directories, for containers."""

    @property
    def carried(self) -> tuple[Path, ...]:
        """The files that a node on another machine is given; of a JVM, its Java's home first."""


class Testimony(Protocol):
    """The recorded content of the disks of stopped nodes."""

    @property
    def damaged(self) -> tuple[str, ...]:
        """The things that could not be read, one sentence for each item."""

    @property
    def summary(self) -> str:
        """The amount that was read, in words."""


class Recorded(Observable, Links, Protocol):
    """The port that a run needs of its cluster, besides the abilities that its faults take."""

    @property
    def node_ids(self) -> Mapping[NodeName, int]:
        """The numbers by which its own records call each node."""

    @property
    def is_answered(self) -> IsAnswered:
        """Probes the way to a node."""

    def watch(self, raw: Path, *, topics: Sequence[str]) -> AbstractContextManager[object]:
        """Record in `raw`, while entered, what the nodes show."""

    def testify(self, raw: Path, *, topics: Sequence[str]) -> Testimony:
        """Record in `raw` what the disks of the stopped nodes hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The demands of a run on what its nodes are made of, besides those of its cluster's spec."""

    releases: Sequence[tuple[int, str]] = ()
    """The releases that a play needs beyond the first one, with the step numbers."""
    levels: Sequence[tuple[int, str]] = ()
    """The levels, likewise."""
    portable: bool = False
    """True if nodes run where this Python is not: in containers, or on other machines."""


class Driver(Protocol):
    """Prepares and builds the clusters of one make. Heavy to import."""

    @property
    def cluster(self) -> type[Cluster]:
        """The class of the clusters that it builds: its abilities are known before one is built."""

    def prepare(self, spec: Any, wanted: Wanted, say: Say) -> Prepared:
        """Fetch, format and train what is not in the cache yet.

        Raises SpecError for what a step of the play asks for and there is not, UsageError for what
        the spec does, and HarnessError if it cannot be had.
        """

    def build(self, spec: Any, prepared: Any, *, site: Site, rules_off: Sequence[str]) -> Recorded:
        """The cluster, with nothing of it running yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """The make of a system's cluster: the form that its nodes take."""

    name: str
    """The name as in `--cluster NAME`."""
    driver_module: str
    """The module whose `DRIVER` builds its clusters."""
    title: str
    """The title in sentences: "Kafka 4.3.1", "the reference cluster"; `{release}` is the spec's."""
    releases_module: str = ""
    """The module whose `LINE` and `is_here(release)` know its releases; empty: it runs none."""
    in_virtual_time: bool = False
    """True if its nodes and clients are no processes."""
    of_our_own: bool = False
    """True if its nodes run on this Python, keep leases, and can be told to break a rule."""

    def __str__(self) -> str:
        return self.name

    def is_here(self, release: str) -> bool:
        """Return whether nothing has to be fetched for a release; less is imported than to run it.

        Raises UsageError if there is no such release, as far as the repository answers.
        """
        if not self.releases_module:
            return True
        here: bool = import_module(self.releases_module).is_here(release)
        return here

    @property
    def line(self) -> "ReleaseLine | None":
        """Its releases; None if it runs none."""
        if not self.releases_module:
            return None
        line: ReleaseLine = import_module(self.releases_module).LINE
        return line

    @property
    def driver(self) -> Driver:
        """The driver of the make, imported at this point."""
        driver: Driver = import_module(self.driver_module).DRIVER
        return driver


def _nothing() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A kind of cluster: `cluster: {system: NAME, …}` in a scenario."""

    name: str
    spec: type[ClusterSpec]
    """The spec's class: its fields are the other keys under `cluster`, its roles the nodes."""
    makes: tuple[Make, ...]
    """The first is what `--cluster` need not name."""
    tables: tuple[str, ...]
    """The tables of evidence that each run of it sets out to record."""
    conditions: Mapping[str, Parse]
    """The conditions that plays may await besides those of every system, by their words."""
    first_view: Callable[[Sequence[int], Sequence[Any]], Any] = lambda _ids, _topics: None
    """(ids of nodes that serve clients, topics) → what it shows when nothing has happened to it."""
    targets: tuple[DescribedTarget, ...] = ()
    """The nodes that plays may describe besides those by name and role."""
    stands_for: Mapping[str, str] = field(default_factory=_nothing)
    """Roles of the first system, and the role here that stands where one of them stood: for a
    scenario that is laid over this system by a flag."""
    led_by: str = ""
    """The role of the node that leads the others; empty: the first role."""
    drawn_targets: tuple[str, ...] = ()
    """The targets of a mix that names none; empty: one node of each role."""
    protocols: frozenset[LinkProtocol] = frozenset((LinkProtocol.KAFKA,))
    """The protocols that its links carry."""
    message_names: Mapping[str, str] = field(default_factory=_nothing)
    """Its own names of messages that have others in Kafka's protocol, by Kafka's."""
    keyed: bool = True
    """True if its clients write to the partitions of topics, which its scenarios list."""

    @property
    def mix_targets(self) -> tuple[str, ...]:
        """Return the targets of a mix that names none, in its words."""
        return self.drawn_targets or tuple(f"one {role.name}" for role in self.spec.roles)

    @property
    def in_virtual_time(self) -> Make | None:
        """Return its first make whose nodes are simulated; None if it has none."""
        return next((make for make in self.makes if make.in_virtual_time), None)

    @property
    def by_name(self) -> Mapping[str, Make]:
        """Return its makes by name."""
        return {make.name: make for make in self.makes}
