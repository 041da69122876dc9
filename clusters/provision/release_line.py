"""The releases of one software by their names: which there may be, and how each comes here."""

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.clusters.provision.cache import Progress, cache_dir, kept
from fencepost.clusters.provision.growth import growth_told
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.maven import (
    Coordinates,
    NotInRepositoryError,
    RunProgram,
    refuse_absent,
)
from fencepost.clusters.provision.pinned import PINNED
from fencepost.clusters.provision.releases import (
    Release,
    fetch_into,
    jars_in,
    version_numbers,
    whole_release,
)
from fencepost.history.failure import HarnessError, UsageError

_NAME: Final = re.compile(r"\d+\.\d+\.\d+(-[A-Za-z0-9.]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseLine:
    """All releases of one software."""

    title: str
    """Its name, "Kafka"; in small letters, its folder in the cache."""
    known: tuple[str, ...]
    """Those that were run. Any other since the oldest may be asked for."""
    oldest: tuple[int, ...]
    too_old: str
    """The reason why none before the oldest will do: "to run without ZooKeeper"."""
    server: Callable[[str], Coordinates]
    """The coordinates of the release of this name."""
    beside: Callable[[str], tuple[Coordinates, ...]]
    """The jars that a server needs, too, and no release asks for."""
    lacking: Callable[[Sequence[Path]], tuple[Coordinates, ...]] = lambda _jars: ()
    """The jars that a release needs beside these that came with it."""
    end: tuple[int, ...] = ()
    """The first release that will not do any more; none: there is no such."""
    too_new: str = ""
    """The reason why it will not do: "to run with ZooKeeper"."""
    other_way: str = ""
    """A thing that may be named instead of a release: "path:DIR for a build"."""

    def fetched(self, name: str, *, java: Java, run: RunProgram, progress: Progress) -> Release:
        """Return the release of this name; fetch it if it is not in the cache.

        Raises UsageError if there is no such release; UnfetchedError if it is not in the cache and
        cannot be fetched; HarnessError if the cache cannot be used.
        """

        def fetch(draft: Path) -> None:
            wanted, title = (self.server(name), *self.beside(name)), f"{self.title} {name}"
            try:
                with growth_told(draft, doing=f"fetching {title}", progress=progress):
                    fetch_into(draft, wanted, title=title, java=java, run=run)
                if more := self.lacking(jars_in(draft / "jars")):
                    shutil.rmtree(draft / "jars")
                    fetch_into(draft, (*wanted, *more), title=title, java=java, run=run)
            except NotInRepositoryError as error:
                raise self._not_to_be_had(name, error) from error

        return self.kept(name, fetch, progress=progress)

    def kept(self, name: str, fill: Callable[[Path], None], *, progress: Progress) -> Release:
        """Return the release of this name; if it is not in the cache, have its entry filled first.

        Raises UsageError if there can be no such release, what `fill` raises, and HarnessError if
        its jars are not those of the release.
        """
        self._refuse_unless_release(name)
        release = kept(
            self._entry(name),
            read=whole_release,
            build=fill,
            doing=f"fetching {self.title} {name}",
            progress=progress,
        )
        return self._pinned(name, release)

    def here(self, name: str) -> Release | None:
        """Return the release of this name; None if it is not in the cache.

        Raises UsageError and HarnessError as `kept` does.
        """
        self._refuse_unless_release(name)
        release = whole_release(self._entry(name))
        return None if release is None else self._pinned(name, release)

    def _pinned(self, name: str, release: Release) -> Release:
        pinned = PINNED.get((self.title, name), release.digest)
        if release.digest != pinned:
            raise HarnessError(
                f"{self.title} {name}: its jars are not those of the release (SHA-256 "
                f"{release.digest}, expected {pinned}); delete {self._entry(name)} to fetch it "
                "again, from a repository that can be trusted"
            )
        return release

    def is_here(self, name: str) -> bool:
        """Return whether it is in the cache. False: it must be fetched.

        Raises UsageError if there is no such release, as far as the repository answers.
        """
        self._refuse_unless_release(name)
        if whole_release(self._entry(name)) is not None:
            return True
        try:
            refuse_absent(self.server(name))
        except NotInRepositoryError as error:
            raise self._not_to_be_had(name, error) from error
        return False

    def _entry(self, name: str) -> Path:
        return cache_dir() / self.title.lower() / name

    def _not_to_be_had(self, name: str, error: NotInRepositoryError) -> UsageError:
        known = ", ".join(self.known)
        return UsageError(f"{self.title} {name} cannot be had: {error}; known to work: {known}")

    def _refuse_unless_release(self, name: str) -> None:
        way_out = f"releases known to work: {', '.join(self.known)}"
        if self.other_way:
            way_out += f"; or {self.other_way}"
        if not _NAME.fullmatch(name):
            near = " or ".join(one for one in self.known if one.startswith(f"{name}."))
            hint = f"; did you mean {near}?" if near else ""
            raise UsageError(f'"{name}" is not a release of {self.title}{hint}; {way_out}')
        if version_numbers(name) < self.oldest:
            raise UsageError(f"{self.title} {name} is too old {self.too_old}; {way_out}")
        if self.end and version_numbers(name) >= self.end:
            raise UsageError(f"{self.title} {name} is too new {self.too_new}; {way_out}")
