"""The abilities of this machine: each is examined, with a remedy where it is missing."""

import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil

from fencepost.clusters.compiled import is_compiled
from fencepost.clusters.hosts.bandwidth import why_no_limits, why_no_netem
from fencepost.clusters.hosts.cgroups.hierarchy import parents
from fencepost.clusters.hosts.clocks.library import clock_trial
from fencepost.clusters.hosts.disks.image import why_no_disks
from fencepost.clusters.hosts.docker.daemon import connected
from fencepost.clusters.hosts.docker.image import BASE, base_archive, missing_to_make_base
from fencepost.clusters.hosts.ledger import left_ledgers
from fencepost.clusters.hosts.local_host import loopback_address
from fencepost.clusters.hosts.namespaces import why_no_namespaces
from fencepost.clusters.hosts.packets import why_no_rules
from fencepost.clusters.hosts.power.follower import power_trial
from fencepost.clusters.hosts.process import orphans
from fencepost.clusters.hosts.ssh.host import examine_machine
from fencepost.clusters.hosts.ssh.inventory import Inventory
from fencepost.clusters.provision.cache import cache_dir
from fencepost.clusters.provision.java import find_java
from fencepost.harness.prepare.inventory_file import load_inventory
from fencepost.history.failure import HarnessError
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.registry import EPISODES, kinds_with_prerequisite

_MEMORY_BYTES_MIN = 4 << 30
"""The memory for four JVMs of 300 MB, Spark's of 1 GB, and clients."""
_DISK_BYTES_MIN = 2 << 30
_NO_NETEM: Final = "not needed: the proxy delays, drops, duplicates and reorders, frame by frame"


def _faults_with(prerequisite: Prerequisite) -> tuple[str, ...]:
    """Return the kinds of fault that take this, in the order of their names."""
    return tuple(sorted(kinds_with_prerequisite(prerequisite)))


_OF_POWER = _faults_with(Prerequisite.DISKS)
_OF_PROCESSES = tuple(
    kind for kind in EPISODES if not any(kind in _faults_with(one) for one in Prerequisite)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """One ability: its name, what was found, and the remedy if it is missing."""

    what: str
    ok: bool
    found: str
    way_out: str = ""
    needed: bool = True
    """True if every run needs it; an ability that is not needed opens further words and flags."""
    faults: tuple[str, ...] = ()
    """The faults of a mix that take it: possible here if it is ok, and else not."""

    def as_data(self) -> dict[str, object]:
        """Return its fields for JSON."""
        return asdict(self)


def examine(results: Path, inventory: Path | None = None) -> list[DoctorFinding]:
    """Examine everything that a run needs. Nothing is raised for a missing thing.

    `inventory`: the file of machines to examine, too; UsageError is raised for impossible entries.
    """
    looks: list[Callable[[], DoctorFinding]] = [
        _system,
        _java,
        _memory,
        lambda: _disk("results", results),
        lambda: _disk("cache", cache_dir()),
        _releases,
        _simulator,
        _link_addresses,
        _namespaces,
        _docker_finding,
        _packets_finding,
        _bandwidth_finding,
        _netem_finding,
        _own_disks,
        _power,
        _clocks,
        _groups,
        _left_behind,
    ]
    machines = () if inventory is None else _machines(load_inventory(inventory))
    return [*(look() for look in looks), *machines]


def _machines(inventory: Inventory) -> Iterator[DoctorFinding]:
    java_home = find_java().home
    for machine in inventory.machines:
        what = f"machine {machine}"
        try:
            found = examine_machine(machine, known_hosts=inventory.known_hosts, java_home=java_home)
        except HarnessError as error:
            yield DoctorFinding(what=what, ok=False, found="cannot be used", way_out=str(error))
        else:
            yield DoctorFinding(what=what, ok=True, found=found)


def _system() -> DoctorFinding:
    linux = sys.platform == "linux" and Path("/proc/self/stat").exists()
    return DoctorFinding(
        what="local processes",
        ok=linux,
        found=f"{sys.platform}, {os.cpu_count()} cores",
        faults=_OF_PROCESSES,
        way_out="" if linux else "faults on local processes need Linux and /proc",
    )


def _java() -> DoctorFinding:
    try:
        java = find_java()
    except HarnessError as error:
        return DoctorFinding(what="Java", ok=False, found="none", way_out=str(error))
    return DoctorFinding(
        what="Java", ok=True, found=f"{java.version} at {java.home} ({java.source})"
    )


def _memory() -> DoctorFinding:
    available = psutil.virtual_memory().available
    return DoctorFinding(
        what="memory",
        ok=available >= _MEMORY_BYTES_MIN,
        found=f"{available / 2**30:.1f} GiB available",
        way_out="" if available >= _MEMORY_BYTES_MIN else "1 + 3 nodes and Spark need 4 GiB",
    )


def _disk(what: str, path: Path) -> DoctorFinding:
    existing = next(parent for parent in (path, *path.resolve().parents) if parent.exists())
    free_bytes = shutil.disk_usage(existing).free
    writable = os.access(existing, os.W_OK)
    ok = writable and free_bytes >= _DISK_BYTES_MIN
    return DoctorFinding(
        what=f"disk for {what}",
        ok=ok,
        found=f"{free_bytes / 2**30:.1f} GiB free at {path}{'' if writable else ', not writable'}",
        way_out=""
        if ok
        else "make room for 2 GiB, or choose another place: "
        + ("--results DIR" if what == "results" else "FENCEPOST_CACHE=DIR"),
    )


def _releases() -> DoctorFinding:
    cached = sorted(path.name for path in (cache_dir() / "kafka").glob("[0-9]*"))
    return DoctorFinding(
        what="Kafka",
        ok=True,
        found=", ".join(cached) + " in the cache" if cached else "no release in the cache yet",
        way_out="" if cached else "the first run fetches its release (about 50 MB)",
    )


def _simulator() -> DoctorFinding:
    return DoctorFinding(
        what="simulator", ok=True, found="compiled" if is_compiled() else "plain Python"
    )


def _link_addresses() -> DoctorFinding:
    """Check that links can have addresses: Linux has all of 127.0.0.0/8, a sandbox may not."""
    address = loopback_address(0, 1)
    faults = _faults_with(Prerequisite.PROXY)
    try:
        with socket.socket() as listener:
            listener.bind((address, 0))
    except OSError as error:
        way_out = "holds and partitions need an address for each link; without them: --no-wire"
        found = f"{address} cannot be listened on: {error.strerror}"
        return DoctorFinding(what="links", ok=False, found=found, way_out=way_out, faults=faults)
    found = f"{address} and the like can be listened on"
    return DoctorFinding(what="links", ok=True, found=found, faults=faults)


def _namespaces() -> DoctorFinding:
    why = why_no_namespaces()
    return DoctorFinding(
        what="network namespaces",
        ok=why is None,
        needed=False,
        found="--host netns" if why is None else "none",
        way_out=why or "",
    )


def _own_disks() -> DoctorFinding:
    """Check for disks of nodes' own, which faults of disks and an exact loss of power need."""
    why = why_no_disks()
    return DoctorFinding(
        what="disks of nodes' own",
        ok=why is None,
        found=why or "one was made, lost its power and came back",
        way_out="" if why is None else "fill_disk, stall_disk and the like take them",
        needed=False,
        faults=_faults_with(Prerequisite.DISK_IMAGES),
    )


def _power() -> DoctorFinding:
    """Check for loss of power.

    It takes disks of nodes' own, or else a library that notes what was synced.
    """
    if why_no_disks() is None:
        found = "by disks of nodes' own (disks: image)"
        return DoctorFinding(what="loss of power", ok=True, found=found, faults=_OF_POWER)
    return _tried(
        "loss of power",
        lambda: (
            "by a library that notes what was synced (disks: followed): of what a process "
            f"wrote, {power_trial()} bytes were lost, none of them synced"
        ),
        way_out="cut_power takes one or the other",
        faults=_OF_POWER,
    )


def _clocks() -> DoctorFinding:
    return _tried(
        "wrong clocks",
        lambda: f"a process told the time {-clock_trial():,.0f} s behind believed it",
        way_out="skew is out of reach on this kind of machine",
        faults=_faults_with(Prerequisite.CLOCKS),
    )


def _groups() -> DoctorFinding:
    return _tried(
        "control groups",
        lambda: ", ".join(
            f"{name} (v{one.version}) in {one.directory}" for name, one in parents().items()
        ),
        way_out="throttle and squeeze take them",
        faults=_faults_with(Prerequisite.GROUPS),
    )


def _tried(
    what: str, found: Callable[[], str], *, way_out: str, faults: tuple[str, ...]
) -> DoctorFinding:
    """Return the finding of a trial. `found`: its words; HarnessError if it failed."""
    try:
        return DoctorFinding(what=what, ok=True, found=found(), faults=faults)
    except HarnessError as error:
        return DoctorFinding(
            what=what, ok=False, found=str(error), way_out=way_out, needed=False, faults=faults
        )


def _left_behind() -> DoctorFinding:
    counts = {"processes": len(orphans()), "ledgers of things to undo": len(left_ledgers())}
    left = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return DoctorFinding(
        what="left behind",
        ok=not left,
        found=f"{left} of dead runs" if left else "nothing",
        way_out="fencepost clean" if left else "",
    )


def _docker_finding() -> DoctorFinding:
    """Check for what `--host docker` needs: a daemon, the right to make networks, an image."""
    try:
        with connected() as daemon:
            version = daemon.version()
            loaded = daemon.image_id(BASE.image) is not None
    except HarnessError as error:
        return _docker(found="no", way_out=str(error))
    found = f"daemon {version}"
    if os.geteuid() != 0:
        return _docker(found=found, way_out="--host docker makes routes: it needs root")
    if loaded:
        return _docker(ok=True, found=f"{found}, base image loaded")
    if base_archive().is_file():
        return _docker(ok=True, found=f"{found}, base image in the cache")
    if missing := missing_to_make_base():
        lacking = f"the base image needs {missing}; or name one that Docker has: --image NAME"
        return _docker(found=found, way_out=lacking)
    making = "the first run makes the base image (a minute or two)"
    return _docker(ok=True, found=found, way_out=making)


def _packets_finding() -> DoctorFinding:
    """Check whether packets can be dropped for partitions, in networks of the nodes' own."""
    return _of_networks(
        "packets",
        found="dropped by rules (`by: packets`)",
        why=why_no_namespaces() or why_no_rules(),
    )


def _bandwidth_finding() -> DoctorFinding:
    """Check whether the bandwidth of what a node sends can be limited."""
    return _of_networks(
        "bandwidth", found="bounded by rate", why=why_no_namespaces() or why_no_limits()
    )


def _netem_finding() -> DoctorFinding:
    """Check whether the kernel can delay, lose and reorder packets; Fencepost does not use this."""
    why = why_no_namespaces() or why_no_netem()
    found = why or "the kernel has it"
    return DoctorFinding(what="netem", ok=why is None, found=found, way_out=_NO_NETEM, needed=False)


def _of_networks(what: str, *, found: str, why: str | None) -> DoctorFinding:
    said = found if why is None else "none"
    return DoctorFinding(
        what=what, ok=why is None, found=said, way_out=why or "", needed=False, faults=(what,)
    )


def _docker(*, found: str, ok: bool = False, way_out: str = "") -> DoctorFinding:
    return DoctorFinding(what="containers", ok=ok, found=found, way_out=way_out, needed=False)
