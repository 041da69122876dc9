"""The place for our control groups: one unified hierarchy (v2), or one for each controller.

Ours are made below a group that the harness is in, or is below, so that whatever bounds hold for
the harness hold for its nodes as well. In v2 a group that has processes gives its controllers to
none below it, so the nearest group above that hands `cpu` and `memory` on is taken. Source: the
kernel's `admin-guide/cgroup-v2.rst` and `cgroup-v1/`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from fencepost.history.failure import HarnessError

CONTROLLERS: Final = ("cpu", "memory")
_ROOT: Final = PurePosixPath("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """A group below which ours is made."""

    version: int
    """1 or 2."""
    directory: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mount:
    version: int
    root: PurePosixPath
    """The group that is mounted there: "/" unless it is a container's view."""
    point: Path
    controllers: frozenset[str]


def parents() -> Mapping[str, Parent]:
    """Return parents by controller; HarnessError, with the reason, if one allows no group."""
    try:
        mounts = mounts_of(Path("/proc/self/mountinfo").read_text())
        own = _own_groups(Path("/proc/self/cgroup").read_text())
    except OSError as error:
        raise HarnessError(f"this machine has no control groups: {error}") from error
    return {controller: _parent(controller, mounts, own) for controller in CONTROLLERS}


def mounts_of(mountinfo: str) -> tuple[_Mount, ...]:
    """The hierarchies that are mounted, by the lines of /proc/self/mountinfo."""
    found = []
    for line in mountinfo.splitlines():
        place, _, kind = line.partition(" - ")
        root, point = place.split()[3:5]
        name, _, options = kind.split()[:3]
        if name in ("cgroup", "cgroup2"):
            found.append(
                _Mount(
                    version=2 if name == "cgroup2" else 1,
                    root=PurePosixPath(root),
                    point=Path(point),
                    controllers=frozenset(options.split(",")),
                )
            )
    return tuple(found)


def _own_groups(lines: str) -> Mapping[str, PurePosixPath]:
    """Return our own group by controller, "" for the unified hierarchy, by /proc/self/cgroup."""
    found: dict[str, PurePosixPath] = {}
    for line in lines.splitlines():
        _, names, group = line.split(":", 2)
        found |= dict.fromkeys(names.split(","), PurePosixPath(group))
    return found


def _parent(
    controller: str, mounts: tuple[_Mount, ...], own: Mapping[str, PurePosixPath]
) -> Parent:
    for mount in mounts:
        if mount.version == 1 and controller in mount.controllers:
            directory = _inside(mount, own.get(controller, _ROOT))
            return _writable(Parent(version=1, directory=directory), controller)
    for mount in mounts:
        if mount.version != 1:
            directory = _inside(mount, own.get("", _ROOT))
            for above in (directory, *directory.parents):
                if _hands_on(above, controller):
                    return _writable(Parent(version=2, directory=above), controller)
                if above == mount.point:
                    break
    raise HarnessError(
        f"the cgroup controller {controller} is not mounted, or not delegated to this user"
    )


def _inside(mount: _Mount, group: PurePosixPath) -> Path:
    """The directory of a group. In a container the mount's root may be the group itself."""
    below = group.relative_to(mount.root) if group.is_relative_to(mount.root) else group
    return mount.point / str(below).lstrip("/")


def _hands_on(directory: Path, controller: str) -> bool:
    try:
        return controller in (directory / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False


def _writable(parent: Parent, controller: str) -> Parent:
    if not os.access(parent.directory, os.W_OK):
        raise HarnessError(
            f"cannot create a control group for {controller} in {parent.directory}: run as root, "
            "or delegate that group to this user"
        )
    return parent
