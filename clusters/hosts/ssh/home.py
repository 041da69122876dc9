"""Our directory on a machine: all that is ever written there lies inside of it."""

import shlex
from pathlib import PurePosixPath

from clusters.hosts.ssh.connection import SshConnection

__all__ = ["home_of"]


def home_of(connection: SshConnection) -> PurePosixPath:
    """Return our directory over there, absolute, made if need be; HarnessError if it cannot be."""
    directory = shlex.quote(connection.machine.directory)
    words = f"mkdir -p {directory} && cd {directory} && pwd -P"
    return PurePosixPath(connection.require("sh", "-c", words).strip())
