"""A file system of its own for a node: ext4 on a sparse image file, by way of a loop device.

That makes a power cut exact: what a process wrote lies in the page cache of *this* file system, and
shutting it down drops precisely that. The file system's own journal then decides what the next
mount finds. (Why not cut files at Kafka's recovery point, or shadow them: decision 18.)

The kernel writes back in any order and at any time, so a power cut may leave a log that ends in
the middle of a batch. Before one, a drawn part of a drawn file is written by the kernel's own means
(`sync_file_range`), and nothing that it could not have written on its own: the result is legal. The
parts are whole pages, or what the file system keeps together.

The loop device is marked to go with the last mount, so a mount is all that there is to undo. The
image stays where it is: `mount -o loop,ro disk.img DIR` shows it later.
"""

import os
import random
import tempfile
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.disks.calls import shut_down, sync_all, sync_head
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.tools import tool, tool_missing
from fencepost.clusters.hosts.undo import Unmount
from fencepost.history.failure import HarnessError

SIZE_BYTES: Final = 4 << 30
"""The size of an image: more than a run writes. It is sparse, and takes what is written to it."""
_OPTIONS: Final = "noatime,errors=remount-ro"
"""An error of the file system makes it read-only, which is how disks become that."""
_TRIAL_BYTES: Final = 16 << 20
_WITNESS: Final = "written-back"
_TORN_MAX: Final = 3


class ImageDisk:
    """One image, one mount. Not thread-safe; every method raises HarnessError if it fails."""

    def __init__(self, image: Path, *, mount_point: Path, ledger: Ledger) -> None:
        self.image: Final = image
        self.mount_point: Final = mount_point
        self._ledger = ledger

    @property
    def mounted(self) -> bool:
        """True if it is mounted."""
        return os.path.ismount(self.mount_point)

    def make(self, *, size_bytes: int = SIZE_BYTES) -> None:
        """Make an empty one, and mount it."""
        self.mount_point.mkdir(parents=True, exist_ok=True)
        with self.image.open("wb") as image:
            image.truncate(size_bytes)
        # -m 0: none of it is kept for root, or a full disk would not be full for root's processes.
        lazily = "lazy_itable_init=1,lazy_journal_init=1,nodiscard"
        tool("mkfs.ext4", "-q", "-F", "-m", "0", "-E", lazily, str(self.image))
        self._ledger.note(Unmount(directory=str(self.mount_point)))
        self.mount()
        (self.mount_point / "lost+found").rmdir()
        sync_all(self.mount_point)

    def mount(self) -> None:
        """Mount it: its journal is replayed."""
        device = _attached(self.image)
        try:
            tool("mount", "-t", "ext4", "-o", _OPTIONS, device, str(self.mount_point))
        finally:
            # In use, it goes with its last user; not mounted, it goes at once.
            tool("losetup", "--detach", device)

    def sync(self) -> None:
        """Make everything durable that was written to it."""
        sync_all(self.mount_point)

    def lose_power(self) -> None:
        """Let nothing reach the disk from now on; what was not written is lost."""
        shut_down(self.mount_point)

    def unmount(self) -> None:
        """Unmount it; no process may use it any more. Do nothing if it is not mounted."""
        Unmount(directory=str(self.mount_point)).undo()

    def renew(self) -> None:
        """Take it away and mount it again, as a machine does that comes back."""
        self.unmount()
        self.mount()


def missing() -> str | None:
    """Return why this machine can have no such disk; None if, as far as can be seen, it can."""
    if os.geteuid() != 0:
        return "only root may mount"
    if absent := tool_missing("mkfs.ext4", "losetup", "mount", "umount"):
        return f"{absent} is not installed (e2fsprogs, util-linux)"
    if not Path("/dev/loop-control").exists():
        return "the kernel has no loop devices, or /dev/loop-control is kept from this container"
    if "\text4" not in Path("/proc/filesystems").read_text():
        return "the kernel has no ext4 (modprobe ext4)"
    return None


def device_of(directory: Path) -> str:
    """The name of the block device that a directory lies on, e.g. `loop3`."""
    number = directory.stat().st_dev
    return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve().name


def why_no_disks() -> str | None:
    """Return why disks do not work here; None if one was made, lost its power and came back."""
    if why := missing():
        return why
    try:
        with (
            tempfile.TemporaryDirectory(prefix=f"fencepost-disk-{os.getpid()}-") as directory,
            Ledger(run_id=f"trial-of-a-disk-{os.getpid()}") as ledger,
        ):
            home = Path(directory)
            disk = ImageDisk(home / "disk.img", mount_point=home / "disk", ledger=ledger)
            disk.make(size_bytes=_TRIAL_BYTES)
            disk.lose_power()
            disk.renew()
    except (HarnessError, OSError) as error:
        return str(error)
    return None


def _attached(image: Path) -> str:
    """A loop device on the image. Past the page cache of the machine's disk, where it can be."""
    try:
        return tool("losetup", "--find", "--show", "--direct-io=on", str(image)).strip()
    except HarnessError:
        return tool("losetup", "--find", "--show", str(image)).strip()


def tear(mount_point: Path, *, seed: str) -> str:
    """Write a part of up to three logs, each drawn from the seed; which, in words.

    The process that writes them must be stopped. Raises OSError as the kernel does.
    """
    draw = random.Random(seed)  # noqa: S311 -- a choice, no secret
    logs = sorted(
        path for path in mount_point.rglob("*.log") if path.is_file() and path.stat().st_size
    )
    chosen = draw.sample(logs, min(len(logs), draw.randint(1, _TORN_MAX)))
    parts = [(path, draw.randint(1, path.stat().st_size)) for path in chosen]
    for path, size_bytes in parts:
        sync_head(path, size_bytes)
    _commit(mount_point)
    names = (f"{size_bytes} bytes of {path.relative_to(mount_point)}" for path, size_bytes in parts)
    return f"written back before: {', '.join(names) or 'nothing'}"


def _commit(mount_point: Path) -> None:
    """Have the file system's journal written: sizes and names as they are, data left alone."""
    descriptor = os.open(mount_point / _WITNESS, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    (mount_point / _WITNESS).unlink()
