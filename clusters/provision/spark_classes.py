"""An archive of Spark's parsed and verified classes (AppCDS): it halves the start of a session.

A small session is started once to learn which classes checks load; then the JVM dumps them, which
takes half a minute and 170 MB of the cache. As with Kafka's (`clusters.kafka.preparation`), an
archive fits one build of Java and one class path with its files as they were: both are in its name.
One that does not fit is ignored by the JVM. A torn one may crash it, so it is given none that is
not as it was made.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pyspark

from fencepost.clusters.provision.cache import Progress, cache_dir, kept
from fencepost.clusters.provision.fingerprints import Fingerprint, fingerprint_of, is_unchanged
from fencepost.clusters.provision.java import Java
from fencepost.history.failure import HarnessError
from fencepost.history.program import IMPORT_ROOT

_ARCHIVE: Final = "classes.jsa"
_INDEX: Final = "archive.json"
_TRAINING: Final = "fencepost.clusters.provision.spark_training"
_CLASS_LIST: Final = "classes.txt"
_TIMEOUT_S: Final = 300.0
"""The time-out of the training, and of the dump."""
_OF_ANOTHER_SPARK: Final = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS")


def spark_class_archive(java: Java, *, home: Path, progress: Progress) -> Path | None:
    """The archive for PySpark's own jars, made if need be; None if making it fails.

    `home`: the JAVA_HOME that Spark is started with (`clusters.provision.java.spark_java_home`).
    """
    try:
        return kept(
            cache_dir() / "classes" / f"spark-{pyspark.__version__}-{_fit(java)}",
            read=_read,
            build=lambda draft: _build(draft, java, home),
            doing="learning to start Spark quickly",
            progress=progress,
        )
    except HarnessError as error:
        # It only makes starts slower; and if Spark does not start at all, the check will say so.
        progress(f"starts of Spark will be slow: {error}")
        return None


def _fit(java: Java) -> str:
    """Return all that the JVM compares before it uses an archive."""
    parts = [str(java.home), java.build]
    for jar in sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar")):
        status = jar.stat()
        parts.append(f"{jar} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _read(entry: Path) -> Path | None:
    archive = entry / _ARCHIVE
    try:
        index: Fingerprint = json.loads((entry / _INDEX).read_text())
        return archive if is_unchanged(archive, index) else None
    except (OSError, ValueError, KeyError):
        return None


def _build(draft: Path, java: Java, home: Path) -> None:
    classes, archive = draft / _CLASS_LIST, draft / _ARCHIVE
    class_path = _said(
        [sys.executable, "-W", "ignore", "-m", _TRAINING, str(classes)],
        environment=_environment(home),
    )
    dump = ("-Xshare:dump", "-Xmx512m", "-XX:+UseSerialGC", f"-XX:SharedClassListFile={classes}")
    _said(
        [str(java.executable), *dump, f"-XX:SharedArchiveFile={archive}", "-cp", class_path],
        environment=dict(os.environ),
    )
    if not archive.is_file():
        raise HarnessError("no archive of classes was made")
    classes.unlink()
    (draft / _INDEX).write_text(json.dumps(fingerprint_of(archive)))


def _environment(home: Path) -> dict[str, str]:
    """Return the environment of a local session of the checks (`checkers.runner.session`)."""
    kept_ones = {name: os.environ[name] for name in os.environ if name not in _OF_ANOTHER_SPARK}
    packages = str(IMPORT_ROOT)
    return {
        **kept_ones,
        "JAVA_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH", "")])),
    }


def _said(command: list[str], *, environment: dict[str, str]) -> str:
    """Return what a command writes to its standard output. Raises HarnessError if it fails."""
    try:
        done = subprocess.run(
            command,
            check=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no output"])[-1]
        raise HarnessError(
            f"{Path(command[0]).name} ended with {error.returncode}: {last}"
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{Path(command[0]).name} did not end: {error}") from error
    return done.stdout
