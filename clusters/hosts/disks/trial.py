"""A trial of disks of their own for nodes on this machine, on a small disk."""

import os
import tempfile
from pathlib import Path
from typing import Final

from clusters.hosts.disks.image import ImageDisk, missing
from clusters.hosts.ledger import Ledger
from history.failure import HarnessError

__all__ = ["why_no_disks"]

_SIZE_BYTES: Final = 16 << 20


def why_no_disks() -> str | None:
    """Return why disks do not work here; None if one was made, lost its power and came back."""
    if why := missing():
        return why
    try:
        with (
            tempfile.TemporaryDirectory(prefix="fencepost-disk-") as directory,
            Ledger(run_id=f"trial-of-a-disk-{os.getpid()}") as ledger,
        ):
            home = Path(directory)
            disk = ImageDisk(home / "disk.img", mount_point=home / "disk", ledger=ledger)
            disk.make(size_bytes=_SIZE_BYTES)
            disk.lose_power()
            disk.renew()
    except (HarnessError, OSError) as error:
        return str(error)
    return None
