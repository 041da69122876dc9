"""The Docker daemon of this machine, asked over its socket; what it refuses becomes one line.

The daemon must share this machine's files and processes: nodes' directories are mounted where they
lie, and what becomes of a process is seen in /proc. One that runs elsewhere is told at the first
start of a container.
"""

import importlib
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Self

from fencepost.history.failure import HarnessError

_ANSWER_TIMEOUT_S: Final = 60
"""A container starts within a second; ten times that on a machine with much else to do."""
# Above the range from which this machine takes ports for nodes: a connection that a node opens
# never takes the port of its own listener.
_OUTGOING_PORTS: Final = "61001 65535"
_UNIX: Final = "unix://"
_SOCKET: Final = f"{_UNIX}/var/run/docker.sock"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """A container to create: what is run in it, where, and what it sees of this machine."""

    name: str
    image: str
    argv: Sequence[str]
    env: Mapping[str, str]
    directory: Path
    """The directory in which it starts; mounted at the same path, to be written."""
    readable: Sequence[Path]
    """Mounted at the same paths, to be read."""
    user: str
    """`uid:gid`, so that what it writes belongs to whoever runs the harness."""
    hostname: str
    network: str
    address: str
    memory_bytes: int
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSpec:
    """A bridge of its own, internal: Docker leads nothing out of it. All addresses are IPv4."""

    name: str
    bridge: str
    subnet: str
    gateway: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """The daemon's report of a container's process."""

    running: bool
    pid: int
    """The pid as this machine counts; 0 if it does not run."""
    exit_code: int
    """The exit code as a shell has it: 128 + n if signal n ended it. Void while it runs."""
    out_of_memory: bool


class Daemon:
    """A daemon that answers. Each method raises HarnessError saying what could not be done.

    A context manager: leaving it closes its connections.
    """

    def __init__(self, sdk: Any, client: Any) -> None:
        self._errors = sdk.errors
        self._client = client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def version(self) -> str:
        """E.g. "20.10.24"."""
        with self._asked("ask the Docker daemon for its version"):
            return str(self._client.version()["Version"])

    def image_id(self, name: str) -> str | None:
        """The id of an image (`sha256:…`) by its name, tag or id; None if the daemon has none."""
        with self._asked(f"look for the image {name}"):
            try:
                return str(self._client.inspect_image(name)["Id"])
            except self._errors.ImageNotFound:
                return None

    def import_image(self, archive: Path, *, repository: str, tag: str) -> None:
        """Make an image of one layer from a tar archive of a root directory."""
        doing = f"make an image of {archive}"
        with self._asked(doing):
            said = self._client.import_image(str(archive), repository=repository, tag=tag)
        if self.image_id(f"{repository}:{tag}") is None:
            raise HarnessError(f"Docker cannot {doing}: {' '.join(str(said).split())}")

    def read_directory(self, image: str, path: str, *, into: IO[bytes]) -> bool:
        """Write a directory of an image as a tar archive. False if the image has none there."""
        with self._asked(f"read {path} in the image {image}"):
            # It is never started; a command is asked for all the same.
            container = self._client.create_container(image, entrypoint=["-"])["Id"]
            try:
                chunks, _ = self._client.get_archive(container, path)
                into.writelines(chunks)
            except self._errors.NotFound:
                return False
            finally:
                self._client.remove_container(container, force=True)
        return True

    def create_network(self, spec: NetworkSpec) -> None:
        """Make a network."""
        pool = {"Subnet": spec.subnet, "Gateway": spec.gateway}
        with self._asked(f"make the network {spec.name} ({spec.subnet})"):
            self._client.create_network(
                spec.name,
                driver="bridge",
                internal=True,
                check_duplicate=True,
                ipam={"Driver": "default", "Config": [pool]},
                options={"com.docker.network.bridge.name": spec.bridge},
                labels=dict(spec.labels),
            )

    def remove_network(self, name: str) -> None:
        """Remove a network, if it is there."""
        with self._asked(f"remove the network {name}"), suppress(self._errors.NotFound):
            self._client.remove_network(name)

    def create_container(self, spec: ContainerSpec) -> None:
        """Make a container; it does not run yet."""
        ends = {spec.network: {"IPAMConfig": {"IPv4Address": spec.address}}}
        with self._asked(f"make the container {spec.name}"):
            self._client.create_container_from_config(
                {
                    "Image": spec.image,
                    "Entrypoint": list(spec.argv),
                    "Env": [f"{name}={value}" for name, value in spec.env.items()],
                    "WorkingDir": str(spec.directory),
                    "User": spec.user,
                    "Hostname": spec.hostname,
                    "Labels": dict(spec.labels),
                    "HostConfig": _host_config(spec),
                    "NetworkingConfig": {"EndpointsConfig": ends},
                },
                spec.name,
            )

    def start_container(self, name: str) -> None:
        """Start a container that does not run."""
        with self._asked(f"start the container {name}"):
            self._client.start(name)

    def container(self, name: str) -> ContainerState:
        """Return the state of a container."""
        with self._asked(f"look at the container {name}"):
            state = self._client.inspect_container(name)["State"]
        return ContainerState(
            running=state["Running"],
            pid=state["Pid"],
            exit_code=state["ExitCode"],
            out_of_memory=state["OOMKilled"],
        )

    def await_end(self, name: str) -> None:
        """Wait until the daemon itself knows that the process of a container has ended."""
        with self._asked(f"see the end of the container {name}"):
            self._client.wait(name, timeout=_ANSWER_TIMEOUT_S)

    def remove_container(self, name: str) -> None:
        """Remove a container, if it is there, whatever it does."""
        with self._asked(f"remove the container {name}"), suppress(self._errors.NotFound):
            self._client.remove_container(name, force=True)

    @contextmanager
    def _asked(self, doing: str) -> Iterator[None]:
        try:
            yield
        except self._errors.APIError as error:
            raise HarnessError(f"Docker cannot {doing}: {error.explanation or error}") from error
        except (self._errors.DockerException, _unanswered()) as error:
            raise HarnessError(f"Docker cannot {doing}: {error}") from error


def connected() -> Daemon:
    """The daemon that DOCKER_HOST names, or the one behind the usual socket.

    Raises HarnessError if there is no Docker SDK, or no daemon answers.
    """
    try:
        sdk = importlib.import_module("docker")
    except ImportError as error:
        raise HarnessError(
            "containers need the Docker SDK for Python, which is not installed: pip install docker"
        ) from error
    url = os.environ.get("DOCKER_HOST") or _SOCKET
    if refusal := _refusal(url):
        raise HarnessError(
            f"no Docker daemon answers at {url}: {refusal}; start one (systemctl start docker), "
            "or get the right to use it (usermod -aG docker $USER)"
        )
    try:
        return Daemon(sdk, sdk.APIClient(base_url=url, version="auto", timeout=_ANSWER_TIMEOUT_S))
    except (sdk.errors.DockerException, _unanswered()) as error:
        raise HarnessError(f"the Docker daemon at {url} does not answer: {error}") from error


def _unanswered() -> type[Exception]:
    """The SDK's errors on the way to a daemon. They are imported with it, and no sooner."""
    error: type[Exception] = importlib.import_module("requests").RequestException
    return error


def _refusal(url: str) -> str | None:
    """Return why no process of this machine answers there; None if one does."""
    path = url.removeprefix(_UNIX)
    if path == url:
        return f"it must be a socket of this machine ({_SOCKET})"
    with socket.socket(socket.AF_UNIX) as dialled:
        try:
            dialled.connect(path)
        except OSError as error:
            return error.strerror
    return None


def _host_config(spec: ContainerSpec) -> dict[str, object]:
    read = [_mount(path, read_only=True) for path in spec.readable]
    return {
        "Mounts": [*read, _mount(spec.directory, read_only=False)],
        "NetworkMode": spec.network,
        # A node takes no privilege: it has files of its own user, and high ports.
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "Memory": spec.memory_bytes,
        # No extra swap: a node that is out of memory is to be seen at once.
        "MemorySwap": spec.memory_bytes,
        "Sysctls": {"net.ipv4.ip_local_port_range": _OUTGOING_PORTS},
        # The process writes its own log into its directory.
        "LogConfig": {"Type": "none", "Config": {}},
    }


def _mount(path: Path, *, read_only: bool) -> dict[str, object]:
    return {"Type": "bind", "Source": str(path), "Target": str(path), "ReadOnly": read_only}
