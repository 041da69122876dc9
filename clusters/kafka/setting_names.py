"""The settings that a release of Kafka defines, by name: of nodes, and of topics.

A node takes any property and says nothing of one that it does not know, so a misspelt name is a run
under other settings than its author believes. The release itself tells its names, by the programs
that print its documentation. Names that it defines and does not document are found as constants of
its servers' classes. What a release says is kept in the cache, by the digest of its jars.
"""

import json
import re
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.command import Completed
from fencepost.clusters.provision.cache import Progress, cache_dir, kept
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.releases import Release

_FILE: Final = "names.json"
_OF_NODES: Final = ("kafka.server.KafkaConfig",)
_OF_TOPICS: Final = ("org.apache.kafka.storage.internals.log.LogConfig", "kafka.log.LogConfig")
"""The programs, of which a release has one: Kafka 3.5 moved it."""
_NAME_IN_PAGE: Final = re.compile(r'<a id="(?:broker|topic)?(?:configs_)?([a-z0-9._-]+)"')
_NAME: Final = re.compile(rb"[a-z][a-z0-9]*(?:[.-][a-z0-9]+)+")
_CLIENTS: Final = "kafka-clients-"
_TIMEOUT_S: Final = 120.0

Run = Callable[..., Completed]
"""Runs a program to its end, as `run_command` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingNames:
    """The names that one release defines. A kind that it did not tell is empty: none is refused."""

    nodes: frozenset[str]
    topics: frozenset[str]
    constants: frozenset[str]
    """Whatever looks like a name in its servers' classes: internal settings are among these."""


def stored_names(release: Release) -> SettingNames | None:
    """Return the names that a release was asked for before; None if it was not."""
    return _read(_entry(release))


def setting_names(release: Release, *, java: Java, run: Run, progress: Progress) -> SettingNames:
    """Return the names that a release defines: a second or two the first time, ms afterwards."""

    def build(draft: Path) -> None:
        told = {
            kind: sorted(_told(programs, release, java=java, run=run, draft=draft))
            for kind, programs in (("nodes", _OF_NODES), ("topics", _OF_TOPICS))
        }
        told["constants"] = sorted(_constants(release.jars))
        (draft / _FILE).write_text(json.dumps(told))

    return kept(
        _entry(release),
        read=_read,
        build=build,
        doing=f"asking Kafka {release.version} for the names of its settings",
        progress=progress,
    )


def names_in(page: str) -> frozenset[str]:
    """Return the names that a page of a release's documentation lists."""
    return frozenset(_NAME_IN_PAGE.findall(page))


def _entry(release: Release) -> Path:
    return cache_dir() / "settings" / f"{release.version}-{release.digest[:16]}"


def _read(entry: Path) -> SettingNames | None:
    try:
        told = json.loads((entry / _FILE).read_text())
        return SettingNames(**{kind: frozenset(names) for kind, names in told.items()})
    except (OSError, ValueError, TypeError):
        return None


def _told(
    programs: Iterable[str], release: Release, *, java: Java, run: Run, draft: Path
) -> frozenset[str]:
    for program in programs:
        argv = [str(java.executable), "-XX:TieredStopAtLevel=1", "-cp", release.class_path, program]
        ended = run(argv, name="settings", directory=draft, timeout_s=_TIMEOUT_S)
        if ended.exit_code == 0 and (names := names_in(ended.output)):
            return names
    return frozenset()


def _constants(jars: Iterable[Path]) -> frozenset[str]:
    """Return the constants of servers' classes that look like names."""
    found: set[str] = set()
    for jar in jars:
        if not jar.name.startswith("kafka") or jar.name.startswith(_CLIENTS):
            continue
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                if entry.endswith(".class") and "onfig" in entry:
                    found |= {one.decode() for one in _NAME.findall(archive.read(entry))}
    return frozenset(found)
