"""A test for changed files: cheap if a file was not touched, by its digest otherwise."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

Fingerprint = Mapping[str, str | int]
"""`size`, `mtime_ns` and `sha256`, as JSON keeps them."""


def fingerprint_of(path: Path) -> Fingerprint:
    """The file as it is now."""
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": sha256_of(path)}


def is_unchanged(path: Path, fingerprint: Fingerprint) -> bool:
    """Return whether the content is unchanged; read only if the time differs and the size does not.

    Raises OSError if it is not there, KeyError if the fingerprint is not well-formed.
    """
    status = path.stat()
    if status.st_size != fingerprint["size"]:
        return False
    if status.st_mtime_ns == fingerprint["mtime_ns"]:
        return True
    return sha256_of(path) == fingerprint["sha256"]


def sha256_of(path: Path) -> str:
    """Return the digest of a file in hexadecimal."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def listing_digest(files: Mapping[str, Path]) -> str:
    """Return a digest of the files' names, sizes and times, in their order: 16 hex digits."""
    digest = hashlib.sha256()
    for name, path in files.items():
        status = path.stat()
        digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]
