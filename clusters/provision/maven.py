"""Jars from Maven Central or a mirror of it, by their coordinates, with the Ivy inside PySpark.

The mirror is the one of `FENCEPOST_MAVEN_MIRROR`, else the one of central in the user's Maven
settings. Ivy keeps nothing outside of the directory that it is given.
"""

import os
import re
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

from fencepost.clusters.provision.cache import CACHE_VARIABLE
from fencepost.clusters.provision.java import Java, network_options
from fencepost.history.failure import HarnessError, UsageError

MIRROR_VARIABLE: Final = "FENCEPOST_MAVEN_MIRROR"
"""Environment variable: the URL of a repository to use instead of Maven Central."""

PLAIN_VARIABLE: Final = "FENCEPOST_MAVEN_HTTP"
"""Environment variable: if it is set, a mirror may be at a URL of plain http."""

_PLAIN: Final = re.compile(r"http:/+(?!/|localhost\b|127\.)")
"""Plain http that leaves this machine."""
_SUMS_AT_ONCE: Final = 8
_CENTRAL: Final = "https://repo1.maven.org/maven2/"
_ANSWER_TIMEOUT_S: Final = 5.0
_FETCH_TIMEOUT_S: Final = 800.0
_FREE_BYTES_MIN: Final = 1 << 20
_MIRRORS_OF_CENTRAL: Final = frozenset({"central", "*", "external:*"})
_UNREACHABLE = re.compile(
    r"\((?:java|javax|sun)\.[\w.]*?(\w+(?:Exception|Error): .*)\)$", re.MULTILINE
)
_NO_HOST = re.compile(r"Host (\S+) not found")
"""Ivy's warning where names do not resolve (no network); it calls the jars "not found", too."""
_MISSING = re.compile(r":: (\S+#\S+;\S+): not found|\[NOT FOUND +\] (\S+)")
_DAMAGED = re.compile(r"\[FAILED +\] (\S+: .*) \(\d+ms\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinates:
    """One artifact, with all that it needs at run time."""

    organisation: str
    name: str
    revision: str


class FinishedProgram(Protocol):
    """A program that ran to its end."""

    @property
    def exit_code(self) -> int:
        """0 if it did what it was asked to."""

    @property
    def output(self) -> str:
        """The output of both streams, in the order of writing."""


class RunProgram(Protocol):
    """Runs a program to its end; raises HarnessError if it cannot be started or takes too long."""

    def __call__(
        self, argv: Sequence[str], /, *, name: str, directory: Path, timeout_s: float
    ) -> FinishedProgram:
        """Run it inside `directory`, where `<name>.log` keeps what it says."""


class NotInRepositoryError(HarnessError):
    """The repository answered, and does not have it."""


def repository() -> str | None:
    """The URL of a mirror to fetch from, with a slash at its end; None: Ivy's own Maven Central.

    Raises UsageError if it is not a URL.
    """
    chosen = os.environ.get(MIRROR_VARIABLE) or _mirror_in(_maven_settings())
    if chosen is None:
        return None
    if not re.match(r"(https?|file)://?\S+$", chosen):
        raise UsageError(f"{MIRROR_VARIABLE}={chosen} is not a URL (http:, https: or file:)")
    if _PLAIN.match(chosen) and not os.environ.get(PLAIN_VARIABLE):
        raise UsageError(
            f"{chosen}: plain http can be tampered with on the way; use https, or set "
            f"{PLAIN_VARIABLE}=1"
        )
    return chosen.rstrip("/") + "/"


def refuse_absent(wanted: Coordinates) -> None:
    """Raise NotInRepositoryError if the repository answers at once that it does not have this."""
    root = repository() or _CENTRAL
    if not root.startswith("http"):
        return
    place = "/".join((*wanted.organisation.split("."), wanted.name, wanted.revision))
    file = Request(f"{root}{place}/{wanted.name}-{wanted.revision}.pom", method="HEAD")  # noqa: S310  # http
    try:
        urlopen(file, timeout=_ANSWER_TIMEOUT_S).close()  # noqa: S310  # http
    except HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            named = f"{wanted.organisation}#{wanted.name};{wanted.revision}"
            raise NotInRepositoryError(f"{_repository_name()} does not have {named}") from None
    except OSError:
        return  # what is wrong is Ivy's to find out and to say


def fetch_jars(
    wanted: Sequence[Coordinates], *, into: Path, java: Java, run: RunProgram, work: Path
) -> None:
    """Fetch jars and the jars they need at run time as `into/<artifact>-<revision>.jar`.

    `work` is an empty directory for Ivy's own files. Raises NotInRepositoryError if the repository
    answered that it does not have one of them; HarnessError if it could not be reached, or the
    disk is full.
    """
    settings, module = work / "ivysettings.xml", work / "ivy.xml"
    settings.write_text(_ivy_settings(repository(), cache=work / "cache"))
    module.write_text(_ivy_module(wanted))
    done = run(
        [
            *(str(java.executable), *network_options(java), "-jar", str(_ivy_jar())),
            *("-settings", str(settings), "-ivy", str(module), "-confs", "wanted"),
            *("-retrieve", f"{into}/[artifact]-[revision].[ext]"),
        ],
        name="ivy",
        directory=work,
        timeout_s=_FETCH_TIMEOUT_S,
    )
    if done.exit_code != 0:
        # Ivy's own words may be missing: they are written to the same disk.
        if shutil.disk_usage(work).free < _FREE_BYTES_MIN:
            raise HarnessError(
                f"the disk of {work.parent.parent} is full; make room or set {CACHE_VARIABLE} to "
                "another directory"
            )
        raise _failure(done.output)
    if (root := repository()) is not None:
        _refuse_without_sums(root, work / "cache")


def _refuse_without_sums(root: str, cache: Path) -> None:
    """Raise HarnessError if a mirror has no checksum file of a jar: Ivy takes such jars as well.

    Ivy has compared those that there are.
    """
    jars = sorted(cache.glob("*/*/jars/*.jar"))
    with ThreadPoolExecutor(_SUMS_AT_ONCE) as pool:
        there = list(pool.map(partial(_has_sum, root), jars))
    without = [jar.name for jar, has_sum in zip(jars, there, strict=True) if not has_sum]
    if without:
        more = f" and {len(without) - 1} more" if len(without) > 1 else ""
        raise HarnessError(f"{root} has no checksum file (.sha1) of {without[0]}{more}")


def _has_sum(root: str, jar: Path) -> bool:
    name = jar.parents[1].name
    revision = jar.stem.removeprefix(f"{name}-")
    place = "/".join((*jar.parents[2].name.split("."), name, revision, f"{jar.name}.sha1"))
    try:
        urlopen(f"{root}{place}", timeout=_ANSWER_TIMEOUT_S).close()  # noqa: S310  # http or file
    except OSError:
        return False
    return True


def _maven_settings() -> Path:
    return Path.home() / ".m2" / "settings.xml"


def _mirror_in(settings: Path) -> str | None:
    """The URL of the mirror of central in the user's own Maven settings, if there is one."""
    try:
        root = ET.parse(settings).getroot()  # noqa: S314 -- the user's own configuration
    except (OSError, ET.ParseError):
        return None
    for mirror in root.iterfind("{*}mirrors/{*}mirror"):
        mirrored = (mirror.findtext("{*}mirrorOf") or "").replace(" ", "").split(",")
        if _MIRRORS_OF_CENTRAL.intersection(mirrored) and "!central" not in mirrored:
            return (mirror.findtext("{*}url") or "").strip() or None
    return None


def _ivy_jar() -> Path:
    # Found, not imported: PySpark takes longer than a refusal may.
    found = find_spec("pyspark")
    places = found.submodule_search_locations if found is not None else None
    jars = sorted(jar for place in places or () for jar in Path(place, "jars").glob("ivy-*.jar"))
    if not jars:
        raise HarnessError("PySpark has no Ivy among its jars; reinstall pyspark")
    return jars[-1]


def _repository_name() -> str:
    return repository() or "Maven Central"


def _ivy_settings(root: str | None, *, cache: Path) -> str:
    mirrored = f" root={quoteattr(root)}" if root else ""
    return f"""<ivysettings>
  <settings defaultResolver="repository"/>
  <caches defaultCacheDir={quoteattr(str(cache))}/>
  <timeout-constraints>
    <timeout-constraint name="patience" connectionTimeout="20000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="repository" m2compatible="true" useMavenMetadata="false"
             timeoutConstraint="patience"{mirrored}/>
  </resolvers>
</ivysettings>
"""


def _ivy_module(wanted: Sequence[Coordinates]) -> str:
    dependencies = "\n".join(
        f"    <dependency org={quoteattr(one.organisation)} name={quoteattr(one.name)} "
        f'rev={quoteattr(one.revision)} conf="wanted->default"/>'
        for one in wanted
    )
    return f"""<ivy-module version="2.0">
  <info organisation="fencepost" module="wanted"/>
  <configurations><conf name="wanted"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def _failure(output: str) -> HarnessError:
    """Return an error that sums up Ivy's pages of output."""
    where = _repository_name()
    if no_host := _NO_HOST.search(output):
        return HarnessError(
            f"{where} could not be reached: there is no host {no_host[1]} to be found; is there a "
            f"network? {MIRROR_VARIABLE} names a repository that can be reached"
        )
    if failed := _UNREACHABLE.search(output):
        return HarnessError(
            f"{where} could not be reached: {failed[1]}; "
            f"set {MIRROR_VARIABLE} to a repository that can"
        )
    if missing := _MISSING.findall(output):
        names = sorted({module or artifact for module, artifact in missing})
        return NotInRepositoryError(f"{where} does not have {', '.join(names)}")
    if damaged := _DAMAGED.search(output):
        return HarnessError(f"{where} sent a damaged file: {damaged[1]}")
    return HarnessError(f"Ivy failed: {' '.join(output.split()[-40:])}")
