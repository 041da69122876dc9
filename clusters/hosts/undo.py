"""The undo of deeds that concern the whole machine: a closed set of values, which JSON can carry.

An undo is idempotent and sees for itself that it worked: it may be done twice, after a deed that
was never finished, and by another process than the one that did the deed. It touches what carries a
name of ours, or is in a state that only our deed can have left.

Some deeds hold processes so that not even SIGKILL ends them: a writer to a frozen disk is beyond
signals. These are let go before anything waits for an end. A killed process takes a while to be
gone: what it still uses is waited for, with a bound.
"""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from fencepost.clusters.hosts.cgroups.limits import lift_bounds
from fencepost.clusters.hosts.disks.calls import thaw
from fencepost.clusters.hosts.docker.daemon import connected
from fencepost.clusters.hosts.process import process_state
from fencepost.clusters.hosts.tools import tool
from fencepost.clusters.port import NodeState
from fencepost.history.failure import HarnessError

_NAMESPACES: Final = Path("/run/netns")
_INTERFACES: Final = Path("/sys/class/net")
_GROUPS: Final = Path("/sys/fs/cgroup")
_MARK: Final = "fencepost-"
_NODE_NAME: Final = re.compile(r"fp(?:f?[0-9]|[0-9a-f]{4}|-).*|fp[0-9a-f]{4}")
"""`fp` and a part of the subnet, and the node."""
_ROUTES: Final = ("unreachable", "local")
_DYING_S: Final = 1.0
"""A large process that was killed takes a moment to end on a busy machine."""
_IN_USE_S: Final = 15.0
"""A JVM that was killed is gone within a second, on a machine with much else to do within some."""
_POLL_S: Final = 0.02


class Undo(Protocol):
    """One deed's undo: a frozen dataclass of JSON's own types."""

    def undo(self) -> None:
        """Do it; nothing if there is nothing left of the deed. HarnessError if it stays undone."""


@runtime_checkable
class LetsGo(Protocol):
    """An undo of a deed by which processes may be held."""

    def let_go(self) -> None:
        """Let them go, so that they can end. Nothing if it holds none; never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmount:
    """Take a mounted disk of a node's away. Its loop device goes with it."""

    directory: str

    def undo(self) -> None:
        """See `Undo`."""
        path = Path(self.directory)
        if path.is_mount():
            self.let_go()
            _tried_while_in_use(lambda: tool("umount", self.directory))
            _require_gone(f"the disk at {self.directory}", there=path.is_mount())

    def let_go(self) -> None:
        """See `LetsGo`."""
        path = Path(self.directory)
        with contextlib.suppress(OSError):  # shut down: then no process waits for it
            if path.is_mount():
                thaw(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveNamespace:
    """Delete a network namespace, and with it the interfaces and rules inside of it."""

    name: str

    def undo(self) -> None:
        """See `Undo`."""
        path = _NAMESPACES / self.name
        if path.exists():
            tool("ip", "netns", "delete", self.name)
            _require_gone(f"namespace {self.name}", there=path.exists())


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveInterface:
    """Delete a network interface of this machine: a bridge, or one end of a pair."""

    name: str

    def undo(self) -> None:
        """See `Undo`."""
        path = _INTERFACES / self.name
        if path.exists():
            # It may vanish on its own meanwhile, when the kernel ends its other end's namespace.
            with contextlib.suppress(HarnessError):
                tool("ip", "link", "delete", self.name)
            _require_gone(f"interface {self.name}", there=path.exists())


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRoute:
    """Delete a route: its words as `ip route show` prints them, in a table of this machine."""

    route: str
    table: str = "main"

    def undo(self) -> None:
        """See `Undo`."""
        if self._is_there():
            tool("ip", "route", "delete", *self.route.split(), "table", self.table)
            _require_gone(f"route {self.route}", there=self._is_there())

    def _is_there(self) -> bool:
        kind, prefix = self.route.split()[:2]
        listed = tool("ip", "-json", "-details", "route", "show", "table", self.table)
        routes = json.loads(listed or "[]")
        return any(one.get("type") == kind and one.get("dst") == prefix for one in routes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveContainer:
    """Remove a container of Docker's, whatever runs in it."""

    name: str

    def undo(self) -> None:
        """See `Undo`."""
        with connected() as daemon:
            daemon.remove_container(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveNetwork:
    """Remove a network of Docker's, and with it its bridge."""

    name: str

    def undo(self) -> None:
        """See `Undo`."""
        with connected() as daemon:
            daemon.remove_network(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveGroup:
    """Delete a control group; a process that still is in it moves to the one above."""

    directory: str

    def undo(self) -> None:
        """See `Undo`."""
        path = Path(self.directory)
        if path.exists():
            _tried_while_in_use(lambda: _emptied_and_removed(path))
            _require_gone(f"control group {path}", there=path.exists())

    def let_go(self) -> None:
        """See `LetsGo`. To end takes processor time, too."""
        lift_bounds(Path(self.directory))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSocket:
    """Delete the socket of a JVM's that it opened because we asked; killed, it leaves it there.

    Where another process has its number by now, that one's stays.
    """

    path: str
    pid: int

    def undo(self) -> None:
        """See `Undo`."""
        path = Path(self.path)
        deadline = time.monotonic() + _DYING_S
        while path.is_socket():
            # One that has ended but is not reaped yet needs it no more either.
            if process_state(self.pid) is NodeState.DOWN:
                path.unlink(missing_ok=True)
            elif time.monotonic() > deadline:
                return
            else:
                time.sleep(_POLL_S)


_KINDS: Final[Mapping[str, type[Any]]] = {
    kind.__name__: kind
    for kind in (
        RemoveContainer,
        RemoveGroup,
        RemoveInterface,
        RemoveNamespace,
        RemoveNetwork,
        RemoveRoute,
        RemoveSocket,
        Unmount,
    )
}
"""Every kind that a ledger may hold."""


def undo_data(undo: Undo) -> dict[str, Any]:
    """An undo for JSON."""
    kind = type(undo)
    assert _KINDS.get(kind.__name__) is kind, f"{kind.__name__} is no kind of undo"
    return {"kind": kind.__name__, **asdict(undo)}  # type: ignore[call-overload]  # a dataclass


def undo_of(data: Mapping[str, Any]) -> Undo:
    """The undo that it was. HarnessError if it is of no kind that is known here."""
    fields = dict(data)
    kind = _KINDS.get(fields.pop("kind", ""))
    if kind is None:
        raise HarnessError(f"{dict(data)} is an undo that this release of Fencepost does not know")
    undo: Undo = kind(**fields)
    if not _bears_our_mark(undo):
        raise HarnessError(f"{dict(data)} has no name of Fencepost's, so it is left alone")
    return undo


def _bears_our_mark(undo: object) -> bool:
    """Return whether what is undone can be ours: a ledger is a file that anybody may have written.

    Of a disk that is the image beside its mount; one that is not mounted is nothing to undo.
    """
    match undo:
        case RemoveNamespace() | RemoveInterface():
            return _NODE_NAME.fullmatch(undo.name) is not None
        case RemoveContainer() | RemoveNetwork():
            return undo.name.startswith(_MARK)
        case RemoveGroup():
            group = Path(undo.directory)
            return group.name.startswith(_MARK) and group.is_relative_to(_GROUPS)
        case RemoveRoute():
            return undo.route.split()[0] in _ROUTES
        case RemoveSocket():
            return Path(undo.path).name.startswith(".java_pid")
        case Unmount():
            return _is_image_beside(Path(undo.directory))
    return True  # of a test's own


def _is_image_beside(mount: Path) -> bool:
    """Return whether nothing is mounted there, or an image that lies in the same directory."""
    if not mount.is_mount():
        return True
    device = mount.stat().st_dev
    backing = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/loop/backing_file")
    try:
        image = backing.read_text().rstrip("\n").removesuffix(" (deleted)")
    except OSError:
        return False
    return Path(image).parent == mount.absolute().parent


def _emptied_and_removed(group: Path) -> None:
    try:
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (group.parent / "cgroup.procs").write_text(pid)
        group.rmdir()
    except OSError as error:
        raise HarnessError(f"control group {group}: {error.strerror}") from error


def _tried_while_in_use(attempt: Callable[[], object]) -> None:
    """Do it, again and again while it is refused; who uses it may just be ending."""
    deadline = time.monotonic() + _IN_USE_S
    while True:
        try:
            attempt()
        except HarnessError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)
        else:
            return


def _require_gone(what: str, *, there: bool) -> None:
    if there:
        raise HarnessError(f"{what} is still there")
