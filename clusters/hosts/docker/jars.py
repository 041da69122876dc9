"""The release of Kafka that an image of the user's has inside.

The harness needs its jars here as well: they format disks, say what metadata records mean, and run
Java clients. So they are copied out of the image once, and nodes read the copy as they read any
other release. Of the image itself that leaves the root directory; Java is this machine's.
"""

import re
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import IO, Final

from clusters.hosts.docker.daemon import Daemon
from clusters.hosts.docker.image import image_named
from clusters.provision.cache import Progress, cache_dir, kept
from history.failure import HarnessError, UsageError

__all__ = ["release_in"]

_JARS: Final = "libs"
"""The directory in which a distribution of Kafka has them."""


def release_in(image: str, home: str, *, daemon: Daemon, progress: Progress) -> Path:
    """A directory of this machine with the jars of the distribution at `home` in the image.

    Raises UsageError if there is no such image, or no distribution there.
    """
    image_named(image, daemon=daemon, progress=progress)
    image_id = (daemon.image_id(image) or "").removeprefix("sha256:")[:16]
    name = f"{image_id}{re.sub(r'[^A-Za-z0-9.]+', '-', home.rstrip('/'))}"
    return kept(
        cache_dir() / "images" / name,
        read=lambda copy: copy if any((copy / _JARS).glob("*.jar")) else None,
        build=lambda draft: _copy(image, f"{home.rstrip('/')}/{_JARS}", draft / _JARS, daemon),
        doing=f"copying {home} out of the image {image}",
        progress=progress,
    )


def _copy(image: str, path: str, into: Path, daemon: Daemon) -> None:
    into.mkdir()
    with tempfile.TemporaryFile() as archive:
        if not daemon.read_directory(image, path, into=archive):
            raise UsageError(f"the image {image} has no {path}; expected a distribution of Kafka")
        archive.seek(0)
        try:
            _unpack(archive, into)
        except (tarfile.TarError, OSError) as error:
            raise HarnessError(f"cannot copy {path} out of the image {image}: {error}") from error
    if not any(into.iterdir()):
        raise UsageError(f"{path} in the image {image} holds no jars")


def _unpack(archive: IO[bytes], into: Path) -> None:
    """The jars alone, whatever their directories are called."""
    with tarfile.open(fileobj=archive) as members:
        for member in members:
            content = members.extractfile(member) if member.name.endswith(".jar") else None
            if content is not None:
                with content, (into / Path(member.name).name).open("wb") as jar:
                    shutil.copyfileobj(content, jar)
