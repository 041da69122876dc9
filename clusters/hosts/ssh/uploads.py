"""The files of this machine that nodes need, carried to another machine once.

A directory that was carried is kept over there under a name that tells its content, so that the
next run finds it.
"""

import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from fencepost.clusters.hosts.ssh.connection import SshConnection
from fencepost.clusters.provision.fingerprints import listing_digest
from fencepost.clusters.provision.java import JAVA_MAJOR_MIN
from fencepost.history.failure import UsageError

COPY: Final = "copy"
"""The value of a machine's `java` that has the harness's own copied there."""


def carry(source: Path, *, connection: SshConnection, home: PurePosixPath) -> PurePosixPath:
    """Return the path over there of a directory or file of this machine; copy it if it is missing.

    `home`: our directory over there. Raises HarnessError if it cannot be copied.
    """
    target = home / "carried" / f"{_fingerprint(source)}-{source.name}"
    if connection.run("test", "-e", str(target)).exit_code:
        connection.require("mkdir", "-p", str(target.parent))
        if source.is_file():
            connection.write(target, source.read_bytes())
        else:
            connection.put(source, target)
    return target


def remote_java(
    home_here: Path, *, connection: SshConnection, home: PurePosixPath
) -> PurePosixPath:
    """The JAVA_HOME that stands for this machine's over there.

    UsageError if the machine has none that is recent enough, and none is to be copied.
    """
    machine = connection.machine
    if machine.java == COPY:
        way_out = "its 'java' must be the home of one over there"
        refuse_other_processor(connection, way_out=way_out)
        return carry(home_here, connection=connection, home=home)
    java = "java" if machine.java is None else f"{machine.java}/bin/java"
    found = connection.run(java, "-XshowSettings:properties", "-version")
    stated = dict(re.findall(r"^\s*(java\.\S+) = (.*)$", found.errors, re.MULTILINE))
    way_out = f"set its 'java' to the home of one, or to '{COPY}' to have this machine's copied"
    if found.exit_code or "java.home" not in stated:
        raise UsageError(f"{machine} has no {java}; {way_out}")
    version = stated.get("java.specification.version", "0")
    if float(version) < JAVA_MAJOR_MIN:
        raise UsageError(
            f"{java} on {machine} is Java {version}, below {JAVA_MAJOR_MIN}; {way_out}"
        )
    return PurePosixPath(stated["java.home"])


def refuse_other_processor(connection: SshConnection, *, way_out: str) -> None:
    """Raise UsageError if what runs on this machine's processor does not run on that one's."""
    far = connection.require("uname", "-m").strip()
    if far != platform.machine():
        raise UsageError(
            f"{connection.machine} is {far}, this machine {platform.machine()}: {way_out}"
        )


def translated(argv: Sequence[str], places: Mapping[Path, PurePosixPath]) -> list[str]:
    """A command line with every path of this machine as it is over there."""
    words = list(argv)
    for here in sorted(places, key=lambda path: len(str(path)), reverse=True):
        words = [word.replace(str(here), str(places[here])) for word in words]
    return words


def home_of(connection: SshConnection) -> PurePosixPath:
    """Return our directory over there, absolute, made if need be; HarnessError if it cannot be."""
    directory = shlex.quote(connection.machine.directory)
    words = f"mkdir -p {directory} && cd {directory} && pwd -P"
    return PurePosixPath(connection.require("sh", "-c", words).strip())


def _fingerprint(source: Path) -> str:
    """Return a digest of names, sizes and times, by which a copy made once is known."""
    inside = [source] if source.is_file() else sorted(source.rglob("*"))
    above = source.parent
    return listing_digest({str(one.relative_to(above)): one for one in inside if one.is_file()})
