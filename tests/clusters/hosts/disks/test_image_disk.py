"""A disk of a node's own: what survives a power cut, and what its troubles do to who writes.

On a real file system on a real loop device; skipped, with the reason, where this machine has none.
"""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fencepost.clusters.hosts.disks.image import ImageDisk, missing, tear
from fencepost.clusters.hosts.disks.troubles import TroubledDisk
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.port import DiskTrouble
from fencepost.history.failure import HarnessError

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"no image disks: {missing()}")

PAGE = b"x" * 4096


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[ImageDisk]:
    with Ledger(run_id="test", directory=tmp_path / "ledgers") as ledger:
        disk = ImageDisk(tmp_path / "disk.img", mount_point=tmp_path / "disk", ledger=ledger)
        disk.make(size_bytes=64 << 20)
        yield disk


def write(path: Path, content: bytes, *, sync: bool) -> None:
    with path.open("ab") as file:
        file.write(content)
        file.flush()
        if sync:
            os.fsync(file.fileno())


def refusal(disk: ImageDisk) -> int | None:
    """What a writer is told; None if it can write."""
    try:
        (disk.mount_point / "probe").write_bytes(PAGE)
    except OSError as error:
        return error.errno
    return None


def test_a_power_cut_takes_what_was_not_synced_and_nothing_else(disk: ImageDisk) -> None:
    write(disk.mount_point / "synced", PAGE * 100, sync=True)
    write(disk.mount_point / "unsynced", PAGE * 100, sync=False)
    disk.lose_power()
    assert refusal(disk) == errno.EIO
    disk.renew()
    assert (disk.mount_point / "synced").read_bytes() == PAGE * 100
    unsynced = disk.mount_point / "unsynced"
    assert not unsynced.exists() or unsynced.read_bytes() == b""
    assert refusal(disk) is None


def test_a_torn_log_keeps_a_part_of_what_was_not_synced(disk: ImageDisk) -> None:
    write(disk.mount_point / "0.log", PAGE * 1000, sync=False)
    write(disk.mount_point / "other", PAGE * 1000, sync=False)
    said = tear(disk.mount_point, seed="3")
    disk.lose_power()
    disk.renew()
    size = (disk.mount_point / "0.log").stat().st_size
    assert 0 < size < 4096 * 1000
    assert (disk.mount_point / "0.log").read_bytes() == b"x" * size
    assert (disk.mount_point / "other").stat().st_size == 0
    assert "0.log" in said


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (DiskTrouble.FULL, errno.ENOSPC),
        (DiskTrouble.READ_ONLY, errno.EROFS),
        (DiskTrouble.FAILED, errno.EIO),
    ],
)
def test_writers_are_refused_until_the_disk_is_mended(
    disk: ImageDisk, trouble: DiskTrouble, told: int
) -> None:
    (disk.mount_point / "kept").write_bytes(PAGE)
    disk.sync()
    troubled = TroubledDisk(disk)
    assert troubled.bring(trouble, stall_s=0)
    assert refusal(disk) == told
    with pytest.raises(HarnessError, match=f"{trouble} already"):
        troubled.bring(DiskTrouble.FULL, stall_s=0)
    troubled.mend()
    assert refusal(disk) is None
    assert (disk.mount_point / "kept").read_bytes() == PAGE


def test_writers_wait_while_a_disk_is_stalled_and_readers_do_not(
    disk: ImageDisk, until: Callable[..., bool]
) -> None:
    (disk.mount_point / "kept").write_bytes(PAGE)
    troubled = TroubledDisk(disk)
    troubled.bring(DiskTrouble.STALLED, stall_s=0)
    writer = threading.Thread(target=lambda: write(disk.mount_point / "kept", PAGE, sync=False))
    writer.start()
    try:
        assert until(lambda: in_uninterruptible_sleep(writer))
        assert (disk.mount_point / "kept").read_bytes() == PAGE
    finally:
        troubled.mend()
        writer.join(10)
    assert (disk.mount_point / "kept").read_bytes() == PAGE * 2


def in_uninterruptible_sleep(thread: threading.Thread) -> bool:
    stat = Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "D"


def test_a_synced_write_to_a_slow_disk_takes_as_long_as_was_asked(disk: ImageDisk) -> None:
    troubled = TroubledDisk(disk)
    said = troubled.bring(DiskTrouble.SLOW, stall_s=0.3)
    assert "a synced write takes" in said
    troubled.mend()
    assert refusal(disk) is None


@pytest.mark.parametrize("trouble", list(DiskTrouble))
def test_whatever_its_trouble_the_ledger_takes_a_disk_away(
    tmp_path: Path, trouble: DiskTrouble
) -> None:
    with Ledger(run_id="test", directory=tmp_path / "ledgers") as ledger:
        disk = ImageDisk(tmp_path / "disk.img", mount_point=tmp_path / "disk", ledger=ledger)
        disk.make(size_bytes=64 << 20)
        troubled = TroubledDisk(disk)
        troubled.bring(trouble, stall_s=0.1)
        troubled.let_go()
    assert not disk.mounted
    assert str(disk.image) not in loops()


def loops() -> str:
    """The images that loop devices of this machine are on."""
    files = Path("/sys/block").glob("loop*/loop/backing_file")
    return "\n".join(file.read_text() for file in files)
