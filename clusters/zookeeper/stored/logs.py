"""The transaction logs of a data directory, read one transaction at a time.

A log file `version-2/log.<first zxid>` has a header of 16 bytes, then for each transaction: an
Adler-32 of it (8 bytes), its length (4), the transaction, the byte "B". It is filled with zeros
ahead of its end. A server that dies leaves its last transaction torn, and begins a file when it
starts again, so any file may end so: that is a tail, and no damage. A wrong checksum is damage,
with which a server does not start (`FileTxnLog.FileTxnIterator`).
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zlib import adler32

from fencepost.clusters.data_tree.transactions import Transaction
from fencepost.clusters.protocol.jute import JuteError
from fencepost.clusters.protocol.zookeeper_records import head_of
from fencepost.clusters.protocol.zookeeper_transactions import decoded_transaction

_HEADER: Final = head_of("FileHeader")
_MAGIC: Final = int.from_bytes(b"ZKLG")
_VERSION: Final = 2
_ENTRY: Final = struct.Struct(">qi")
_END: Final = b"B"


class StoredError(Exception):
    """A file is damaged; the message names it, and the place."""


def log_files(home: Path) -> list[Path]:
    """Return the logs of a `version-2` directory, oldest first."""
    return sorted((path for path in home.glob("log.*") if zxid_of(path) >= 0), key=zxid_of)


def zxid_of(file: Path) -> int:
    """Return the zxid in the name of a log or a snapshot; -1 if it has none."""
    try:
        return int(file.name.split(".")[1], 16)
    except (IndexError, ValueError):
        return -1


def transactions_in(log: Path) -> Iterator[Transaction]:
    """Yield the whole transactions of a log.

    Raises StoredError, behind all that precedes it, for the first one that is damaged or unknown.
    """
    for at, entry in stored_entries(log):
        try:
            yield decoded_transaction(entry)
        except JuteError as error:
            raise StoredError(f"{log.name}: byte {at}: {error}") from error


def stored_entries(log: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (place in the file, bytes) of each whole transaction of a log. Raises StoredError."""
    with log.open("rb") as file:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return  # it was just made
        if _HEADER.unpack(header)[0] != _MAGIC:
            raise StoredError(f"{log.name} is not a transaction log: it begins with {header[:4]!r}")
        while len(head := file.read(_ENTRY.size)) == _ENTRY.size:
            checksum, length = _ENTRY.unpack(head)
            if length <= 0:
                return
            at, entry = file.tell(), file.read(length)
            if len(entry) < length or file.read(1) != _END:
                return
            if adler32(entry) != checksum:
                raise StoredError(
                    f"{log.name}: the transaction at byte {at} has the checksum "
                    f"{adler32(entry):#x}, and {checksum:#x} is stated"
                )
            yield at, entry


def file_header() -> bytes:
    """Return the beginning of a log."""
    return _HEADER.pack(_MAGIC, _VERSION, 0)


def framed(entry: bytes) -> bytes:
    """Return an entry as it lies in a log."""
    return _ENTRY.pack(adler32(entry), len(entry)) + entry + _END
