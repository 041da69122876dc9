"""The abilities of this machine: each is examined, with a remedy where it is missing."""

import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from clusters.compiled import is_compiled
from clusters.hosts.cgroups.hierarchy import parents
from clusters.hosts.clocks.trial import clock_trial
from clusters.hosts.disks.trial import why_no_disks
from clusters.hosts.ledger import left_ledgers
from clusters.hosts.local_host import local_link_address
from clusters.hosts.namespaces import why_no_namespaces
from clusters.hosts.power.trial import power_trial
from clusters.hosts.process import orphans
from clusters.hosts.ssh.examination import examine_machine
from clusters.hosts.ssh.inventory import Inventory
from clusters.provision.cache import cache_dir
from clusters.provision.java import find_java
from harness.doctor.finding import DoctorFinding
from harness.doctor.hosts import (
    bandwidth_finding,
    docker_finding,
    netem_finding,
    packets_finding,
)
from harness.prepare.inventory_file import load_inventory
from history.failure import HarnessError
from nemesis.verbs.registry import EPISODES, kinds_taking
from nemesis.verbs.takes import Takes

__all__ = ["examine"]

_MEMORY_BYTES_MIN = 4 << 30
"""The memory for four JVMs of 300 MB, Spark's of 1 GB, and clients."""
_DISK_BYTES_MIN = 2 << 30


def _taking(takes: Takes) -> tuple[str, ...]:
    """Return the kinds of fault that take this, in the order of their names."""
    return tuple(sorted(kinds_taking(takes)))


_OF_POWER = _taking(Takes.DISKS)
_OF_PROCESSES = tuple(kind for kind in EPISODES if not any(kind in _taking(one) for one in Takes))


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
        docker_finding,
        packets_finding,
        bandwidth_finding,
        netem_finding,
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
    address = local_link_address(0, 1)
    faults = _taking(Takes.PROXY)
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
        faults=_taking(Takes.DISK_IMAGES),
    )


def _power() -> DoctorFinding:
    """Check for loss of power.

    It takes disks of nodes' own, or else a library that notes what was synced.
    """
    if why_no_disks() is None:
        found = "by disks of nodes' own (disks: image)"
        return DoctorFinding(what="loss of power", ok=True, found=found, faults=_OF_POWER)
    try:
        lost_bytes = power_trial()
    except HarnessError as error:
        return DoctorFinding(
            what="loss of power",
            ok=False,
            found=str(error),
            way_out="cut_power takes one or the other",
            needed=False,
            faults=_OF_POWER,
        )
    found = (
        "by a library that notes what was synced (disks: followed): "
        f"of what a process wrote, {lost_bytes} bytes were lost, none of them synced"
    )
    return DoctorFinding(what="loss of power", ok=True, found=found, faults=_OF_POWER)


def _clocks() -> DoctorFinding:
    faults = _taking(Takes.CLOCKS)
    try:
        ahead_s = clock_trial()
    except HarnessError as error:
        way_out = "skew is out of reach on this kind of machine"
        return DoctorFinding(
            what="wrong clocks",
            ok=False,
            found=str(error),
            way_out=way_out,
            needed=False,
            faults=faults,
        )
    found = f"a process told the time {-ahead_s:,.0f} s behind believed it"
    return DoctorFinding(what="wrong clocks", ok=True, found=found, faults=faults)


def _groups() -> DoctorFinding:
    faults = _taking(Takes.GROUPS)
    try:
        found = parents()
    except HarnessError as error:
        return DoctorFinding(
            what="control groups",
            ok=False,
            found=str(error),
            way_out="throttle and squeeze take them",
            needed=False,
            faults=faults,
        )
    places = {name: f"{name} (v{one.version}) in {one.directory}" for name, one in found.items()}
    said = ", ".join(places.values())
    return DoctorFinding(what="control groups", ok=True, found=said, faults=faults)


def _left_behind() -> DoctorFinding:
    counts = {"processes": len(orphans()), "ledgers of things to undo": len(left_ledgers())}
    left = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return DoctorFinding(
        what="left behind",
        ok=not left,
        found=f"{left} of dead runs" if left else "nothing",
        way_out="fencepost clean" if left else "",
    )
