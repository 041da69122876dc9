"""A connection to one machine: log in, run commands, carry files up and down.

Every failure is one line that names the machine and the way out. A key that is not known is never
accepted; the error says how the user can accept it.
"""

import base64
import contextlib
import hashlib
import io
import shlex
import socket
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Self

import paramiko

from fencepost.clusters.hosts.ssh.inventory import SSH_PORT, Machine
from fencepost.history.failure import HarnessError, UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_CONNECT_TIMEOUT_S: Final = 15.0
_KEEPALIVE_S: Final = 5
_TRANSFER_TIMEOUT_S: Final = 300.0
_CHUNK: Final = 1 << 18
_WINDOW_BYTES: Final = 1 << 24
"""The bytes that may be under way: with paramiko's 2 MiB, waits for a far machine are too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The exit of a command over there, with its output."""

    exit_code: int
    output: str
    """stdout."""
    errors: str
    """stderr."""


class SshConnection:
    """Logged in to `machine`, until closed. Thread-safe, as paramiko's transport is."""

    def __init__(self, machine: Machine, *, known_hosts: Path | None = None) -> None:
        self.machine: Final = machine
        self._client = _connected(machine, known_hosts)
        transport = self._client.get_transport()
        assert transport is not None
        transport.set_keepalive(_KEEPALIVE_S)
        self._transport = transport

    @property
    def user(self) -> str:
        """The user that is logged in."""
        return str(self._transport.get_username())

    @property
    def own_address(self) -> str:
        """The address of this machine, as seen on the connection."""
        return _address(self._transport, "own")

    @property
    def far_address(self) -> str:
        """The machine's address, as the connection found it."""
        return _address(self._transport, "far")

    def run(self, *argv: str, timeout_s: float = 30.0) -> CommandResult:
        """Run a command to its end. HarnessError if the connection breaks, or it takes too long."""
        with self._session(shlex.join(argv), timeout_s=timeout_s) as channel:
            output = b"".join(_chunks(channel.recv))
            errors = b"".join(_chunks(channel.recv_stderr))
            return CommandResult(
                exit_code=channel.recv_exit_status(),
                output=output.decode(errors="replace"),
                errors=errors.decode(errors="replace"),
            )

    def require(self, *argv: str, timeout_s: float = 30.0) -> str:
        """The output of a command that must succeed. HarnessError with what it said if not."""
        answer = self.run(*argv, timeout_s=timeout_s)
        if answer.exit_code:
            said = (answer.errors or answer.output).strip().splitlines()
            raise HarnessError(
                f"{self.machine}: {shlex.join(argv)} ended with exit code {answer.exit_code}: "
                f"{said[-1] if said else 'no output'}"
            )
        return answer.output

    def open(self, *argv: str) -> paramiko.Channel:
        """Start a command whose stdin and stdout stay open. The caller closes the channel."""
        try:
            channel = self._transport.open_session(window_size=_WINDOW_BYTES)
            channel.exec_command(shlex.join(argv))
        except (paramiko.SSHException, OSError) as error:
            raise self._broken(error) from error
        return channel

    def write(self, path: PurePosixPath, content: bytes) -> None:
        """Make a file over there hold this, in one step."""
        draft = path.with_name(f".{path.name}.new")
        words = f"cat > {shlex.quote(str(draft))} && mv {_quoted(draft)} {_quoted(path)}"
        with self._session(words, timeout_s=_TRANSFER_TIMEOUT_S) as channel:
            channel.sendall(content)
            self._finished(channel, f"cannot write {path}")

    def read(self, path: PurePosixPath) -> bytes:
        """Return the content of a file; empty if the file does not exist."""
        words = f"test ! -e {_quoted(path)} || cat {_quoted(path)}"
        with self._session(words, timeout_s=_TRANSFER_TIMEOUT_S) as channel:
            content = b"".join(_chunks(channel.recv))
            self._finished(channel, f"cannot read {path}")
            return content

    def put(self, source: Path, target: PurePosixPath) -> None:
        """A copy of a directory becomes `target`, in one step, whatever was there before.

        A link is replaced by a copy of what it leads to.
        """
        draft = target.with_name(f".{target.name}.new")
        words = (
            f"rm -rf {_quoted(draft)} && mkdir -p {_quoted(draft)} && "
            f"tar -xf - -C {_quoted(draft)} && rm -rf {_quoted(target)} && "
            f"mv {_quoted(draft)} {_quoted(target)}"
        )
        with self._session(words, timeout_s=_TRANSFER_TIMEOUT_S) as channel:
            with (
                contextlib.suppress(OSError),  # its exit code says why it went
                tarfile.open(
                    fileobj=_Sending(channel), mode="w|", bufsize=_CHUNK, dereference=True
                ) as archive,
            ):
                archive.add(source, arcname=".")
            self._finished(channel, f"cannot copy {source} to {target}")

    def get(self, source: PurePosixPath, target: Path) -> None:
        """Copy what a directory over there holds into the local `target`, which is made anew.

        A file that is written meanwhile comes as it was at some moment.
        """
        # Exit code 1 of GNU tar: a file changed while it was read.
        words = f"tar -cSf - -C {_quoted(source)} . || test $? -eq 1"
        target.mkdir(parents=True, exist_ok=True)
        with self._session(words, timeout_s=_TRANSFER_TIMEOUT_S) as channel:
            try:
                with (
                    channel.makefile("rb", _CHUNK) as stream,
                    tarfile.open(fileobj=stream, mode="r|", bufsize=_CHUNK) as archive,
                ):
                    archive.extractall(target, filter="data")
            except tarfile.ReadError:
                pass  # its exit code says why there was nothing
            self._finished(channel, f"cannot copy {source}")

    def close(self) -> None:
        """Hang up. Idempotent."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _session(self, command: str, *, timeout_s: float) -> Iterator[paramiko.Channel]:
        try:
            channel = self._transport.open_session(window_size=_WINDOW_BYTES)
            with contextlib.closing(channel):
                channel.settimeout(timeout_s)
                channel.exec_command(f"sh -c {shlex.quote(command)}")
                yield channel
        except TimeoutError as error:
            raise HarnessError(
                f"{self.machine}: no answer within {timeout_s:.0f} s to: {command}"
            ) from error
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise self._broken(error) from error

    def _finished(self, channel: paramiko.Channel, what: str) -> None:
        channel.shutdown_write()
        errors = b"".join(_chunks(channel.recv_stderr)).decode(errors="replace").strip()
        if channel.recv_exit_status():
            first = errors.splitlines()[0] if errors else "no output"
            raise HarnessError(f"{self.machine}: {what}: {first}")

    def _broken(self, error: Exception) -> HarnessError:
        return HarnessError(f"the connection to {self.machine} is broken: {error or 'it ended'}")


class _Sending(io.RawIOBase):
    """A writer that sends all that is written over a channel."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: "ReadableBuffer") -> int:
        """Send all of it."""
        content = bytes(data)
        self._channel.sendall(content)
        return len(content)


class _RefuseUnknown(paramiko.MissingHostKeyPolicy):
    """Says how to accept the key of a machine that is not known."""

    def __init__(self, machine: Machine, known_hosts: Path | None) -> None:
        self._machine = machine
        self._known_hosts = known_hosts

    def missing_host_key(
        self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey
    ) -> None:
        """Never returns."""
        del client, hostname
        file = self._known_hosts or Path("~/.ssh/known_hosts")
        port = "" if self._machine.port == SSH_PORT else f"-p {self._machine.port} "
        raise UsageError(
            f"{self._machine} is not known: its {key.get_name()} key is {_fingerprint(key)}. If "
            "that is what 'ssh-keygen -lf' says over there, accept it with: "
            f"ssh-keyscan {port}{self._machine.host} >> {file}"
        )


def _connected(machine: Machine, known_hosts: Path | None) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    if known_hosts is None:
        client.load_system_host_keys()
    elif known_hosts.exists():
        client.load_system_host_keys(str(known_hosts))
    client.set_missing_host_key_policy(_RefuseUnknown(machine, known_hosts))
    if machine.identity is not None and not machine.identity.is_file():
        raise UsageError(f"{machine}: there is no identity file {machine.identity}")
    try:
        client.connect(
            machine.host,
            port=machine.port,
            username=machine.user,
            key_filename=None if machine.identity is None else str(machine.identity),
            allow_agent=machine.identity is None,
            look_for_keys=machine.identity is None,
            timeout=_CONNECT_TIMEOUT_S,
            banner_timeout=_CONNECT_TIMEOUT_S,
            auth_timeout=_CONNECT_TIMEOUT_S,
        )
    except BaseException as error:
        client.close()
        if isinstance(error, UsageError) or not isinstance(error, Exception):
            raise
        raise _refusal(machine, error) from error
    return client


def _refusal(machine: Machine, error: Exception) -> HarnessError:
    match error:
        case paramiko.BadHostKeyException():
            return UsageError(
                f"{machine} shows another host key than the known one: "
                f"{_fingerprint(error.key)}, not {_fingerprint(error.expected_key)}. This may be "
                "an attack; if the machine was set up anew, forget the old key with: "
                f"ssh-keygen -R {_bracketed(machine)}"
            )
        case paramiko.AuthenticationException():
            user = machine.user or "this user"
            with_what = machine.identity or "the keys of the agent and of ~/.ssh"
            return UsageError(f"{machine} refused the login of {user} with {with_what}")
        case paramiko.PasswordRequiredException():
            return UsageError(
                f"{machine}: {machine.identity} has a passphrase; add it to an SSH agent and name "
                "no identity"
            )
        case socket.gaierror():
            return UsageError(f"{machine}: unknown host name")
        case TimeoutError():
            return HarnessError(f"{machine} did not answer within {_CONNECT_TIMEOUT_S:.0f} s")
        case _:
            return HarnessError(f"{machine} cannot be reached over SSH: {error}")


def _address(transport: paramiko.Transport, end: str) -> str:
    assert isinstance(transport.sock, socket.socket)
    name = transport.sock.getsockname() if end == "own" else transport.sock.getpeername()
    return str(name[0])


def _bracketed(machine: Machine) -> str:
    return machine.host if machine.port == SSH_PORT else f"'[{machine.host}]:{machine.port}'"


def _fingerprint(key: paramiko.PKey) -> str:
    digest = hashlib.sha256(key.asbytes()).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def _quoted(path: PurePosixPath) -> str:
    return shlex.quote(str(path))


def _chunks(read: object) -> Iterator[bytes]:
    assert callable(read)
    while chunk := read(_CHUNK):
        yield chunk
