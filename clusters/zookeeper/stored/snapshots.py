"""The snapshots of a data directory, and the tree that a server would start from.

A snapshot `version-2/snapshot.<zxid>` has a header of 16 bytes, the sessions, the lists of
permissions, and each znode behind its path; a path "/" ends them (the root's own is empty). A seal
follows: an Adler-32 of all before, and "/" again. From 3.6 on the digest of the tree comes next,
from 3.9 on the last zxid, each with a seal of its own; they are left unread. From 3.6 on a snapshot
may be compressed: `.gz`, `.snappy` (`FileSnap`, `SnapStream`, `DataTree.serialize`).

A server takes the newest snapshot that is whole. One that is not was being written when its server
died: no damage.
"""

import struct
from pathlib import Path
from typing import Final
from zlib import adler32

from fencepost.clusters.data_tree.tree import OPEN, ROOT, DataTree, Znode
from fencepost.clusters.protocol.compression import Compression, RecordError
from fencepost.clusters.protocol.decompression import decompressed
from fencepost.clusters.protocol.jute import JuteError, JuteReader
from fencepost.clusters.protocol.zookeeper_records import head_of, read
from fencepost.clusters.protocol.zookeeper_transactions import acls_of
from fencepost.clusters.zookeeper.stored.logs import StoredError, zxid_of

NEVER: Final = 1 << 63
"""A zxid after all others."""

_HEADER: Final = head_of("FileHeader")
_MAGIC: Final = int.from_bytes(b"ZKSN")
_CODECS: Final = {".gz": Compression.GZIP, ".snappy": Compression.SNAPPY}
_OPEN_ACLS: Final = -1
_STAT: Final = head_of("StatPersisted")
_SEAL: Final = struct.Struct(">qi1s")


def newest_tree(home: Path, *, before: int = NEVER) -> DataTree | None:
    """Return the tree of the newest whole snapshot in a `version-2` directory, or None.

    `before`: of a lower zxid than this one. Raises OSError if one cannot be read.
    """
    files = [path for path in home.glob("snapshot.*") if 0 <= zxid_of(path) < before]
    for file in sorted(files, key=zxid_of, reverse=True):
        try:
            return read_snapshot(file)
        except StoredError:
            continue
    return None


def read_snapshot(path: Path) -> DataTree:
    """Return the tree and the sessions of a snapshot.

    Raises StoredError, naming the file, if it is not whole; OSError if it cannot be read.
    """
    content, codec = path.read_bytes(), _CODECS.get(path.suffix)
    try:
        return _tree(content if codec is None else decompressed(content, codec), zxid_of(path))
    except (JuteError, RecordError) as error:
        raise StoredError(f"{path.name}: {error}") from error


def _tree(content: bytes, zxid: int) -> DataTree:
    jute = JuteReader(content)
    jute.skip(_HEADER.size)
    if _HEADER.unpack_from(content)[0] != _MAGIC:
        raise JuteError("not a snapshot")
    listed = jute.vector(lambda: read(jute, "SnapshotSession"))
    sessions = {one["id"]: one["timeOut"] for one in listed}
    listed = jute.vector(lambda: read(jute, "SnapshotAcls"))
    acls = {one["number"]: acls_of(one["acl"]) for one in listed}
    acls[_OPEN_ACLS] = OPEN
    znodes: dict[str, Znode] = {}
    while (path := jute.text()) != ROOT:
        data, acl, at = jute.buffer(), jute.i64(), jute.at
        jute.skip(_STAT.size)
        czxid, mzxid, ctime, mtime, *versions, owner, pzxid = _STAT.unpack_from(content, at)
        znodes[path or ROOT] = Znode(
            data=data,
            acls=acls.get(acl, ()),
            czxid=czxid,
            mzxid=mzxid,
            ctime_ms=ctime,
            mtime_ms=mtime,
            version=versions[0],
            cversion=versions[1],
            aversion=versions[2],
            ephemeral_owner=owner,
            pzxid=pzxid,
        )
    _check_seal(content, jute.at)
    return DataTree(znodes=znodes, sessions=sessions, zxid=zxid)


def _check_seal(content: bytes, at: int) -> None:
    checksum, seal = adler32(memoryview(content)[:at]), content[at : at + _SEAL.size]
    if seal != _SEAL.pack(checksum, 1, ROOT.encode()):
        raise JuteError(f"the checksum of its tree is {checksum:#x}, and its seal {seal.hex()}")
