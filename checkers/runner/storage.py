"""Files by path or by URI, as a task opens them, on whatever machine it runs.

A task is Python: it has no JVM to ask, so what it reads goes through pyarrow's file systems (files,
S3, GCS, Azure, and HDFS where libhdfs is installed). These open a file at any place, so that a task
reads the row groups that it judges and no others. `s3a://`, as Spark says it, is S3; credentials
are found as the cloud's own tools find them.

Where pyarrow has no file system, Spark may have one: `checkers.runner.mirror` asks that one, from
the driver.
"""

import hashlib
from contextlib import closing
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq
from pyarrow.fs import FileSystem, LocalFileSystem

_CHUNK_BYTES: Final = 1 << 20
_ALSO_CALLED: Final = {"s3a": "s3", "s3n": "s3"}


def is_uri(text: str) -> bool:
    """Return whether the text names a place by scheme and not by path."""
    return "://" in text


def local_path(uri: str) -> str | None:
    """Return the path named by a `file://` URI; None for another scheme or machine."""
    parts = urlsplit(uri)
    here = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return unquote(parts.path) if here else None


def file_system(uri: str) -> tuple[FileSystem, str]:
    """Return the file system of a URI, and the path in it.

    Raises pyarrow.ArrowInvalid for a scheme that pyarrow does not know, OSError if it cannot be
    reached (libhdfs is missing, say).
    """
    scheme, mark, rest = uri.partition("://")
    found, path = FileSystem.from_uri(f"{_ALSO_CALLED.get(scheme, scheme)}{mark}{rest}")
    return found, path


def parquet_file(location: str, *, words: list[str]) -> Any:
    """Return the Parquet file at a path or URI, these columns as dictionaries; the user closes."""
    if not is_uri(location):
        return pq.ParquetFile(location, read_dictionary=words)
    system, path = file_system(location)
    return pq.ParquetFile(path, read_dictionary=words, filesystem=system)


def file_size(location: str) -> int:
    """Return the size in bytes. Raises OSError without such a file, or if it is out of reach."""
    system, path = _placed(location)
    size = system.get_file_info(path).size
    if size is None:
        raise FileNotFoundError(f"no file {location}")
    return int(size)


def sha256(location: str) -> str:
    """Return the digest of a file, as hexadecimal digits. Raises OSError if it cannot be read."""
    system, path = _placed(location)
    digest = hashlib.sha256()
    with closing(system.open_input_stream(path)) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _placed(location: str) -> tuple[FileSystem, str]:
    # `from_uri` takes absolute paths as well, but refuses relative ones.
    return file_system(location) if is_uri(location) else (LocalFileSystem(), location)
