"""The Spark session of the checkers: the only place where one is built.

Spark plans, distributes and collects here; the records themselves are read by pyarrow inside Python
tasks. So the JVM is kept small and quick to start. A local session talks to itself over loopback
only, shows no UI, and leaves no file where it was called. Its JVM's output goes to a file of its
own, which is named when the start fails.

The master is any that Spark knows. A local one imports the code from where it lies. Executors of
others need Python with the dependencies, at the path that PYSPARK_PYTHON names, or else where it is
here; the packages `checkers` and `history` with their data are shipped to them. The environment and
the configuration of a Spark of the user's own (SPARK_HOME, SPARK_CONF_DIR, HADOOP_CONF_DIR) count
for these.

The JVM ends with the process that started it, however that one ends: its standard input closes.
After `stop()` it idles, and the next session of the process starts in a fraction of a second.
"""

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from fencepost.checkers.runner.memory import (
    machine_memory_bytes,
    worker_limit_bytes,
    worker_variables,
)
from fencepost.history.failure import HarnessError
from fencepost.history.program import IMPORT_ROOT

_HERE: Final = Path(__file__).parent
_LOG_TAIL_BYTES: Final = 2000
_LOCAL_MASTER: Final = re.compile(r"local(\[(?P<cores>\*|\d+)(,\d+)?\])?")

_JAVA_OPTIONS: Final = (
    # The driver's work is short: a quick compiler and a plain collector start sooner.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    f"-Dlog4j2.configurationFile={(_HERE / 'log4j2.properties').as_uri()}",
)

_ANYWHERE: Final[Mapping[str, str]] = {
    "spark.app.name": "fencepost",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The JVM handles a row a file: to compile code for these takes longer than to interpret them.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Findings are shuffled and collected, never records.
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.maxResultSize": "0",
}

_LOCAL: Final[Mapping[str, str]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

_WORKER_MEMORY: Final = "spark.executor.pyspark.memory"
"""The address space of a Python worker; on a cluster, of an executor's, divided by its cores."""

_OF_ANOTHER_SPARK: Final = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS")
"""Settings of the environment that would start something else than PySpark's own jars."""
PACKAGES: Final = ("fencepost.checkers", "fencepost.history")
"""The packages that a task may import: checkers import nothing else of ours."""

_LEFT_BEHIND: Final = ("__pycache__",)
_DIGEST_CHARACTERS: Final = 16


def is_local(master: str) -> bool:
    """Return whether tasks run on this machine, beneath this process."""
    return _LOCAL_MASTER.fullmatch(master) is not None


def spark_session(
    *,
    java_home: Path,
    master: str = "local[*]",
    memory_bytes: int | None = None,
    class_archive: Path | None = None,
) -> SparkSession:
    """Return a session on `master`; of a process that has one already, that one.

    `java_home`: a Java that PySpark can start (`bin/java` beneath it). `memory_bytes`: what the
    workers of this machine may take together, or those of an executor; by default a share of this
    machine, and what the executors of a cluster are configured for. `class_archive`: of the classes
    of PySpark's own jars, for this Java; a local session starts sooner with it. Raises HarnessError
    with the end of the JVM's log if it does not start.
    """
    local = is_local(master)
    # A name that nobody can know beforehand: others may write where it lies, and link from there.
    opened, name = tempfile.mkstemp(prefix=f"fencepost-spark-{os.getpid()}-", suffix=".log")
    os.close(opened)
    log = Path(name)
    with _environment(
        _variables(java_home, local=local), without=_OF_ANOTHER_SPARK if local else ()
    ):
        try:
            if SparkContext._active_spark_context is None:  # noqa: SLF001  # there is no public way to ask
                archive = class_archive if local else None
                context = _started(_conf(master, memory_bytes, archive), log)
                if not local:
                    _ship(context)
            session = SparkSession.builder.getOrCreate()
        except (PySparkException, Py4JError, OSError) as error:
            raise HarnessError(
                f"Spark did not start on {master} with the Java in {java_home}: {error}; "
                f"the end of {log}: {_tail(log)}"
            ) from error
    log.unlink(missing_ok=True)
    return session


def code_archive(directory: Path) -> Path:
    """Return the archive of the code that runs here, written into `directory`.

    Python imports from the zip; data of a package is read through `importlib.resources`, which
    looks into zips, too. The name is a digest of the content: an executor never takes other code
    for this. The same code gives the same bytes: entries are sorted and bear no dates.

    Raises OSError if the disk refuses.
    """
    content = {"fencepost/__init__.py": (files("fencepost") / "__init__.py").read_bytes()}
    content |= {name: data for package in PACKAGES for name, data in _content(package)}
    path = directory / f"fencepost-{_digest(content)}.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(ZipInfo(name), data, ZIP_DEFLATED)
    return path


def _started(conf: SparkConf, log: Path) -> SparkContext:
    gateway: Any = SparkContext._gateway  # noqa: SLF001  # the JVM of an earlier session, still there
    if gateway is None:
        with log.open("wb") as output:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]  # it has no types
                conf, {"stdout": output, "stderr": output}
            )
    return SparkContext(conf=conf, gateway=gateway)


def _ship(context: SparkContext) -> None:
    """Hand the code to all executors, those that come later included."""
    kept = Path(context._temp_dir)  # noqa: SLF001  # is served as long as the session, and removed with it
    context.addPyFile(str(code_archive(kept)))


def _conf(master: str, memory_bytes: int | None, class_archive: Path | None) -> SparkConf:
    scratch = Path(tempfile.gettempdir())
    archived = (f'"-XX:SharedArchiveFile={class_archive}"',) if class_archive else ()
    settings = {
        "spark.master": master,
        "spark.sql.warehouse.dir": (scratch / "fencepost-warehouse").as_uri(),
        "spark.driver.extraJavaOptions": " ".join((*_JAVA_OPTIONS, *archived)),
    }
    own = _of_local(master, memory_bytes) if is_local(master) else _of_cluster(memory_bytes)
    variables = {f"spark.executorEnv.{name}": one for name, one in worker_variables().items()}
    conf = SparkConf()
    for name, value in {**_ANYWHERE, **settings, **variables, **own}.items():
        conf.set(name, value)
    return conf


def _of_local(master: str, memory_bytes: int | None) -> dict[str, str]:
    limit = worker_limit_bytes(memory_bytes or machine_memory_bytes(), workers=_cores(master))
    # A task imports the kernels by name; a wheel or a source tree has to be found there, too.
    own = {"spark.executorEnv.PYTHONPATH": _python_path(), _WORKER_MEMORY: f"{limit}b"}
    return {**_LOCAL, **own}


def _of_cluster(memory_bytes: int | None) -> dict[str, str]:
    return {} if memory_bytes is None else {_WORKER_MEMORY: f"{memory_bytes}b"}


def _cores(master: str) -> int:
    """Return how many tasks a local master runs at the same time."""
    found = _LOCAL_MASTER.fullmatch(master)
    cores = found["cores"] if found else None
    return (os.cpu_count() or 1) if cores == "*" else int(cores or 1)


def _variables(java_home: Path, *, local: bool) -> dict[str, str]:
    java = {"JAVA_HOME": str(java_home)}
    if local:
        return {**java, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return {**java, "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}


def _python_path() -> str:
    inherited = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(filter(None, [str(IMPORT_ROOT), inherited]))


@contextmanager
def _environment(variables: Mapping[str, str], *, without: tuple[str, ...]) -> Iterator[None]:
    """Set the environment that a JVM is started in; restore it afterwards."""
    before = {name: os.environ.get(name) for name in (*variables, *without)}
    try:
        os.environ.update(variables)
        for name in without:
            os.environ.pop(name, None)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _tail(log: Path) -> str:
    try:
        return log.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace").strip()
    except OSError as error:
        return f"(cannot be read: {error.strerror})"


def _content(package: str) -> Iterator[tuple[str, bytes]]:
    return _files_below(files(package), package.replace(".", "/"))


def _files_below(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.name in _LEFT_BEHIND:
            continue
        name = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _files_below(entry, name)
        else:
            yield name, entry.read_bytes()


def _digest(content: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, data in content.items():
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()[:_DIGEST_CHARACTERS]
