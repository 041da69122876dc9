"""A Spark cluster of real processes: a master and two workers, from PySpark's own jars.

What its executors start as Python sees the dependencies and nothing else: no checkout, no editable
install, another working directory. All ends with the test, however that ends.
"""

import re
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Final

import pyspark

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.provision.java import find_java, spark_java_home

WORKERS: Final = 2
_START_TIMEOUT_S: Final = 60.0
_SPARK_HOME: Final = Path(pyspark.__file__).parent
_DEPLOY: Final = "org.apache.spark.deploy"
_JAVA_OPTIONS: Final = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
)
_MASTER_URL: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED: Final = re.compile(r"Successfully registered with master")


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneCluster:
    master: str
    work: Path
    """Executors run beneath it: `work/<worker>/<application>/<executor>`."""
    environment: Mapping[str, str]
    """Of a driver: which Python the executors have, and how much memory."""

    def executor_directories(self) -> list[Path]:
        return sorted(path.parent for path in self.work.glob("*/app-*/*/stderr"))


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[StandaloneCluster]:
    work, python = directory / "work", directory / "executor-python"
    work.mkdir(parents=True)
    _write_executor_python(python)
    with Warden(run_id="standalone-spark") as warden:
        master = _master(warden, directory)
        for number in range(WORKERS):
            _start_worker(warden, directory, master=master, number=number)
        for number in range(WORKERS):
            _awaited(_REGISTERED, directory / f"worker-{number}.log")
        yield StandaloneCluster(master=master, work=work, environment=_driver(python))


def _driver(python: Path) -> dict[str, str]:
    settings = {
        "spark.executor.memory": "512m",
        "spark.cores.max": str(WORKERS),
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        # The first task waits for both executors: otherwise one may do everything.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
    }
    flags = " ".join(f"--conf {quote(f'{name}={value}')}" for name, value in settings.items())
    return {
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_SUBMIT_ARGS": f"{flags} pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def _write_executor_python(path: Path) -> None:
    # Without `site`, the .pth file of an editable install is not read.
    path.write_text(
        "#!/bin/sh\n"
        f'export PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}{sysconfig.get_path("purelib")}"\n'
        f'exec {sys.executable} -S "$@"\n'
    )
    path.chmod(0o755)


def _master(warden: Warden, directory: Path) -> str:
    arguments = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    log = directory / "master.log"
    _start(warden, f"{_DEPLOY}.master.Master", arguments, log=log, cwd=directory)
    return _awaited(_MASTER_URL, log)[1]


def _start_worker(warden: Warden, directory: Path, *, master: str, number: int) -> None:
    own = directory / "work" / f"worker-{number}"
    own.mkdir()
    places = ["--host", "127.0.0.1", "--webui-port", "0", "--work-dir", str(own)]
    arguments = [*places, "--cores", "1", "--memory", "1g", master]
    log = directory / f"worker-{number}.log"
    _start(warden, f"{_DEPLOY}.worker.Worker", arguments, log=log, cwd=own)


def _start(warden: Warden, main: str, arguments: list[str], *, log: Path, cwd: Path) -> None:
    home = spark_java_home(find_java())
    command = [
        str(home / "bin" / "java"),
        *_JAVA_OPTIONS,
        "-cp",
        f"{_SPARK_HOME}/jars/*",
        main,
        *arguments,
    ]
    # Executors inherit this environment, and no more.
    env = {
        "JAVA_HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "SPARK_HOME": str(_SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",
    }
    warden.spawn(command, name=main, log=log, cwd=cwd, env=env)


def _awaited(pattern: re.Pattern[str], log: Path) -> re.Match[str]:
    """The first match in what a process says, within a bound."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        said = log.read_text(errors="replace") if log.exists() else ""
        if found := pattern.search(said):
            return found
        time.sleep(0.05)
    raise AssertionError(f"{pattern.pattern!r} did not appear in {log}:\n{said[-2000:]}")
