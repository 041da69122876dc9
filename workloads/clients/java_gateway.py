"""A JVM that lives and dies with a client process, driven from Python by py4j.

py4j comes with PySpark, and its jar with it. The JVM reads its standard input, which is a pipe from
here, and exits at its end: however this process goes, that pipe is closed then.
"""

import contextlib
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import files
from pathlib import Path
from typing import Any, Final

from py4j.java_gateway import GatewayParameters, JavaGateway

from fencepost.history.failure import HarnessError

_EXIT_S_MAX: Final = 3.0
_OPTIONS: Final = (
    "-Xmx128m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    # The client process's log gets what Kafka's client says; standard output is py4j's.
    "-Dorg.slf4j.simpleLogger.logFile=System.err",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaProgram:
    """The Java to run, and its jars."""

    executable: str
    class_path: str


class JavaVirtualMachine:
    """A running JVM. HarnessError if it does not come up."""

    def __init__(self, program: JavaProgram) -> None:
        class_path = f"{program.class_path}:{_py4j_jar()}"
        self._process = subprocess.Popen(
            [
                *(program.executable, *_OPTIONS, "-cp", class_path),
                *("py4j.GatewayServer", "--enable-auth", "--die-on-broken-pipe", "0"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        # The port and the secret, one a line, once it listens; nothing else ever comes here.
        port, secret = (self._process.stdout.readline().decode().strip() for _ in range(2))
        if not port.isdecimal():
            raise HarnessError(
                f"the JVM of a client (pid {self._process.pid}) did not start: it printed {port!r}"
            )
        parameters = GatewayParameters(port=int(port), auth_token=secret)
        self._gateway = JavaGateway(gateway_parameters=parameters)

    @property
    def pid(self) -> int:
        """The process id of the JVM."""
        return self._process.pid

    @property
    def classes(self) -> Any:
        """Return Java's classes, by their full names."""
        return self._gateway.jvm

    def map_of(self, content: Mapping[Any, Any]) -> Any:
        """Return a java.util.HashMap."""
        made = self._gateway.jvm.java.util.HashMap()
        for name, value in content.items():
            made.put(name, value)
        return made

    def close(self) -> None:
        """End the JVM."""
        with contextlib.suppress(OSError):
            self._gateway.close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_EXIT_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _py4j_jar() -> Path:
    """Return the jar in the installed py4j; it has the version of the Python half."""
    found = [Path(str(file.locate())) for file in files("py4j") or () if file.suffix == ".jar"]
    if not found:
        raise HarnessError("py4j is installed without its jar; reinstall it")
    return found[0].resolve()
