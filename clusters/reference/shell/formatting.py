"""Formatted directories (K11): which they are, what is in them, and how they are made.

A node starts on formatted directories alone, so that one that lost its disk is not taken for a new
one by mistake. Source: KIP-631, "Command-Line Tools".
"""

import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.clusters.node_port.storage import MetaProperties
from fencepost.clusters.reference.codec.identifiers import METADATA_TOPIC, text_of
from fencepost.clusters.reference.shell.node_settings import ProcessSettings
from fencepost.clusters.reference.shell.small_files import META_NAME, meta_in, meta_text
from fencepost.history.failure import HarnessError

_ID_BITS: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """A directory as it was found."""

    path: Path
    exists: bool
    empty: bool
    meta: MetaProperties | None
    """None: it is not formatted."""
    problem: str | None = None
    """The reason why what is there cannot be read."""


def directories_of(settings: ProcessSettings) -> tuple[Path, ...]:
    """Return every directory that a node uses, each once."""
    return tuple(dict.fromkeys((*settings.log_directories, settings.metadata_directory)))


def looked_at(path: Path) -> Directory:
    """Return what is in a directory."""
    if not path.is_dir():
        return Directory(path=path, exists=False, empty=True, meta=None)
    empty = next(path.iterdir(), None) is None
    try:
        meta = meta_in((path / META_NAME).read_text())
    except FileNotFoundError:
        return Directory(path=path, exists=True, empty=empty, meta=None)
    except (OSError, ValueError) as error:
        return Directory(path=path, exists=True, empty=empty, meta=None, problem=str(error))
    return Directory(path=path, exists=True, empty=empty, meta=meta)


def format_directory(
    path: Path,
    *,
    node_id: int,
    cluster_id: str,
    directory_id: int | None = None,
    force: bool = False,
) -> MetaProperties:
    """Make a formatted directory; `directory_id` None: a new one.

    Raises HarnessError if it is not empty; with `force` all that is in it goes.
    """
    if not looked_at(path).empty:
        if not force:
            raise HarnessError(f"{path} is not empty; --force deletes its content")
        shutil.rmtree(path)
    meta = MetaProperties(
        cluster_id=cluster_id,
        node_id=node_id,
        directory_id=secrets.randbits(_ID_BITS) if directory_id is None else directory_id,
    )
    (path / f"{METADATA_TOPIC}-0").mkdir(parents=True)
    (path / META_NAME).write_text(meta_text(meta))
    return meta


def new_id() -> str:
    """A random id of a cluster, as Kafka writes them; none begins with a dash."""
    while (text := text_of(secrets.randbits(_ID_BITS))).startswith("-"):
        pass
    return text
