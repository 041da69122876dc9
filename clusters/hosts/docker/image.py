"""The root directory of a container: a small Debian made here, or an image of the user's.

A node needs little of it, since its release and its Java are this machine's, mounted at their own
paths: a shell, the C library, and what lies beside it. So the base image is made of Debian's
packages, without any registry of images: `mmdebstrap` writes it as an archive, which stays in the
cache, so that a daemon that has lost its images has this one again within seconds. Its tag is a
digest of the recipe: another recipe is another image.
"""

import hashlib
import json
import re
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from fencepost.clusters.hosts.command import run_command
from fencepost.clusters.hosts.docker.daemon import Daemon
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.provision.cache import Progress, cache_dir, kept
from fencepost.clusters.provision.fingerprints import Fingerprint, fingerprint_of, is_unchanged
from fencepost.history.failure import HarnessError, UsageError

_REPOSITORY: Final = "fencepost-base"
_ARCHIVE: Final = "root.tar"
_INDEX: Final = "image.json"
_BUILD_TIMEOUT_S: Final = 900.0
"""A minute with a near mirror, four on a machine that does much else."""
_JARS: Final = "libs"
"""The directory in which a distribution of Kafka has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRecipe:
    """The ingredients of the base image."""

    suite: str = "bookworm"
    variant: str = "essential"
    packages: tuple[str, ...] = ("iproute2", "libstdc++6", "nftables", "procps", "zlib1g")
    """The packages besides Debian's essential ones: tools to look inside; libraries for Java."""
    left_out: tuple[str, ...] = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*")

    @property
    def tag(self) -> str:
        """The tag of the image: a digest of all of the above."""
        words = json.dumps([self.suite, self.variant, self.packages, self.left_out])
        return hashlib.sha256(words.encode()).hexdigest()[:12]

    @property
    def image(self) -> str:
        """The image's name and tag."""
        return f"{_REPOSITORY}:{self.tag}"

    def command(self, archive: Path) -> list[str]:
        """The command that writes the root directory as an archive."""
        return [
            "mmdebstrap",
            f"--variant={self.variant}",
            f"--include={','.join(self.packages)}",
            *(f"--dpkgopt=path-exclude={path}" for path in self.left_out),
            self.suite,
            str(archive),
        ]


BASE: Final = ImageRecipe()


def image_named(name: str | None, *, daemon: Daemon, progress: Progress) -> str:
    """The image of this name, which the daemon has then; None: the base image, made if need be.

    Raises UsageError if there is no image of this name; HarnessError if the base image cannot be
    made.
    """
    if name is None:
        return _base(daemon, progress)
    if daemon.image_id(name) is None:
        raise UsageError(
            f"Docker has no image {name}; fetch it first (docker pull {name}), or leave --image "
            "out for a small Debian that is made here"
        )
    return name


def base_archive() -> Path:
    """Return where the base image is kept, outside of the daemon; it may not be there yet."""
    return _home() / _ARCHIVE


def missing_to_make_base() -> str | None:
    """Return what is missing on this machine to make the base image; None if nothing is."""
    if shutil.which("mmdebstrap") is None:
        return "mmdebstrap (apt-get install mmdebstrap)"
    return None


def release_in(image: str, home: str, *, daemon: Daemon, progress: Progress) -> Path:
    """Return a directory of this machine with the jars of Kafka's distribution in the image.

    The harness needs them here as well: they format disks, say what metadata records mean, and run
    Java clients. So they are copied out once, and nodes read the copy as they read any other
    release. `home`: where the distribution lies in the image; Java is this machine's.

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


def _base(daemon: Daemon, progress: Progress) -> str:
    if daemon.image_id(BASE.image) is None:
        archive = kept(
            _home(), read=_whole, build=_build, doing="making a base image", progress=progress
        )
        progress("loading the base image into Docker")
        daemon.import_image(archive, repository=_REPOSITORY, tag=BASE.tag)
    return BASE.image


def _home() -> Path:
    return cache_dir() / "images" / BASE.tag


def _whole(home: Path) -> Path | None:
    try:
        index: dict[str, Fingerprint] = json.loads((home / _INDEX).read_text())
        return home / _ARCHIVE if is_unchanged(home / _ARCHIVE, index[_ARCHIVE]) else None
    except (OSError, ValueError, KeyError):
        return None


def _build(draft: Path) -> None:
    if missing := missing_to_make_base():
        raise HarnessError(
            f"there is no base image yet, and making one needs {missing}; or name an image that "
            "Docker has: --image debian:bookworm-slim"
        )
    with Warden(run_id="image") as warden:
        done = run_command(
            BASE.command(draft / _ARCHIVE),
            warden=warden,
            name="mmdebstrap",
            directory=draft,
            timeout_s=_BUILD_TIMEOUT_S,
        )
    if done.exit_code != 0:
        said = [line for line in done.output.splitlines() if line.startswith("E: ")]
        last = said[-1] if said else f"it ended with exit code {done.exit_code}"
        raise HarnessError(f"mmdebstrap could not make a base image: {last.removeprefix('E: ')}")
    index = {_ARCHIVE: fingerprint_of(draft / _ARCHIVE)}
    (draft / _INDEX).write_text(json.dumps(index))


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
