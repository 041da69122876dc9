"""What a run may do to a machine, as lines to be compared: before it, and when it is over.

What the ledgers of *living* runs account for is left out, and their processes: other runs may come
and go meanwhile.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

from fencepost.clusters.hosts.docker.daemon import connected
from fencepost.clusters.hosts.process import HARNESS_VARIABLE, RUN_VARIABLE, harness_lives
from fencepost.clusters.provision.cache import cache_dir
from fencepost.history.failure import HarnessError

_CGROUPS: Final = Path("/sys/fs/cgroup")
_OURS: Final = "fencepost-"
_COUNTED: Final = re.compile(r"counter packets \d+ bytes \d+")
"""In a rule of the packet filter that counts what passes it, as Docker's do."""
_NO_NAMES: Final = ("kind", "table", "pid")


def machine_state(temporary: Path) -> frozenset[str]:
    """All of it, a line each: `kind: what`. `temporary`: where the run keeps temporary files."""
    theirs = set(_held_by_the_living())
    lines = tuple(_lines(temporary))
    # Again: some may have begun meanwhile.
    theirs |= set(_held_by_the_living())
    return frozenset(line for line in lines if not any(word in line for word in theirs))


def dying() -> list[str]:
    """The processes of runs that are over: on a busy machine they take a while to be gone."""
    return [*_processes()]


def held_by(ledger: str) -> frozenset[str]:
    """What of the machine this ledger accounts for."""
    names = tuple(_names_in(map(json.loads, ledger.split("\n")[:-1])))
    return frozenset(
        line for line in _lines(Path("/nowhere")) if any(name in line for name in names)
    )


def of_jvms(pids: Iterable[int]) -> list[str]:
    """What these JVMs keep in /tmp, whatever TMPDIR says, and leave there when they are killed."""
    names = ("hsperfdata_*/{}", ".java_pid{}", ".attach_pid{}")
    found = (Path("/tmp").glob(name.format(pid)) for pid in pids for name in names)
    return [f"+ temporary: {path}" for path in chain.from_iterable(found)]


def differences(before: frozenset[str], after: frozenset[str]) -> list[str]:
    """What is there now and was not (+), and what was there and is not (-)."""
    added = (f"+ {line}" for line in after - before)
    return sorted(chain(added, (f"- {line}" for line in before - after)))


def _lines(temporary: Path) -> Iterator[str]:
    return chain(
        _processes(),
        _told("packet filter", "nft", "list", "ruleset"),
        _told("packet filter", "iptables-save", without=("#", ":")),
        _told("route", "ip", "-4", "route", "show", "table", "all"),
        _told("rule", "ip", "rule"),
        _told("address", "ip", "-oneline", "-family", "inet", "address"),
        _links(),
        _named("namespace", "/run/netns/*"),
        _mounts(),
        _loops(),
        _named("device", "/sys/block/dm-*"),
        (f"control group: {path}" for path in _groups()),
        _dockers(),
        _setting("net/ipv4/ip_forward"),
        _named("ledger", f"{cache_dir()}/ledgers/*"),
        _named("temporary", f"{temporary}/*"),
    )


def _held_by_the_living() -> Iterator[str]:
    """The names of what runs did to the machine whose harness lives."""
    for ledger in cache_dir().glob("ledgers/*.jsonl"):
        try:
            head, *deeds = map(json.loads, ledger.read_text().split("\n")[:-1])
        except (FileNotFoundError, ValueError):
            continue
        if harness_lives(head["harness"]):
            yield from (ledger.name, f"fpd-{head['harness'].partition(':')[0]}-")
            yield from _names_in(deeds)


def _names_in(deeds: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Of what was done, by the words of its undo; of a disk its home, where its image lies too."""
    for deed in deeds:
        held = {name: one for name, one in deed.get("undo", {}).items() if name not in _NO_NAMES}
        yield from (one.removesuffix("/disk") for one in held.values())


def _processes() -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            entries = (process / "environ").read_bytes().decode(errors="replace").split("\0")
            marks = dict(entry.partition("=")[::2] for entry in entries)
            command = (
                (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
        except OSError:
            continue
        mark = marks.get(HARNESS_VARIABLE)
        if mark is not None and any(command) and not harness_lives(mark):
            yield f"process: {process.name} of {marks.get(RUN_VARIABLE)}: {' '.join(command)[:120]}"


def _told(kind: str, *argv: str, without: tuple[str, ...] = ()) -> Iterator[str]:
    """The lines that a tool prints; none where it is not there."""
    try:
        told = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return
    for line in told.stdout.splitlines():
        if line.strip() and not line.startswith(without):
            yield f"{kind}: {_COUNTED.sub('counter', line.strip())}"


def _named(kind: str, pattern: str) -> Iterator[str]:
    return (f"{kind}: {path}" for path in Path("/").glob(pattern.lstrip("/")))


def _links() -> Iterator[str]:
    """Ends of containers' own, which Docker names at random, go with the containers."""
    for path in Path("/sys/class/net").iterdir():
        if not re.fullmatch(r"veth[0-9a-f]{7}", path.name):
            yield f"link: {path.name}"


def _mounts() -> Iterator[str]:
    """Those of Docker's own go with its containers, which are looked at by themselves."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        if "/docker/" not in line:
            yield f"mount: {line}"


def _loops() -> Iterator[str]:
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            yield f"loop device: {path.read_text().strip()}"
        except OSError:  # it has just gone
            continue


def _groups() -> Iterable[Path]:
    return (
        Path(directory) / name
        for directory, names, _ in os.walk(_CGROUPS)
        for name in names
        if name.startswith(_OURS)
    )


def _dockers() -> Iterator[str]:
    try:
        connected().__exit__(None, None, None)
    except HarnessError:
        return
    yield from _told("container", "docker", "ps", "--all", "--format", "{{.Names}}")
    yield from _told("network", "docker", "network", "ls", "--format", "{{.Name}}")
    yield from _told("volume", "docker", "volume", "ls", "--format", "{{.Name}}")


def _setting(name: str) -> Iterator[str]:
    yield f"{name}: {(Path('/proc/sys') / name).read_text().strip()}"
