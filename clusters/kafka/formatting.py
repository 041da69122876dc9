"""Formatted data directories, without a JVM for each.

What Kafka's `StorageTool format` leaves in a directory is `bootstrap.checkpoint`, which holds the
feature levels of a new cluster and differs between nodes by nothing but its timestamps, and
`meta.properties`, which names the cluster, the node and (since 3.7) the directory. So the tool runs
once for each release and metadata version; what it wrote is kept in the cache, and the three ids
are written here. For a dynamic quorum it writes a snapshot of the first voters, too, which
`clusters.kafka.voters` fits to each cluster.
"""

import base64
import json
import re
import uuid
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.command import Completed, run_command
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.configuration import KafkaNode, Listener, first_members, nodes_of
from fencepost.clusters.kafka.launch import tool_command
from fencepost.clusters.kafka.voters import CHECKPOINT as VOTERS
from fencepost.clusters.kafka.voters import VoterNode, VoterSeat, placeholders, stated
from fencepost.clusters.kafka_port import KafkaSpec, Quorum, Role
from fencepost.clusters.provision.cache import Progress, cache_dir, kept
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.releases import Release, version_numbers
from fencepost.history.failure import HarnessError, UsageError

_META: Final = "meta.properties"
_CHECKPOINT: Final = "bootstrap.checkpoint"
_INDEX: Final = "format.json"
_TOOL: Final = "kafka.tools.StorageTool"
_TOOL_TIMEOUT_S: Final = 120.0
_UNSTABLE: Final = "unstable.feature.versions.enable"
"""The one setting that decides which metadata versions the tool accepts."""
_DYNAMIC_SINCE: Final = (3, 9)
_NO_DYNAMIC: Final = re.compile(r"kraft\.version could not be set to 1 .*")
_OLDEST: Final = (3, 3, 0)
"""3.3-IV0: no cluster can be started at an older metadata version."""
_VERSION_ENUM: Final = "org/apache/kafka/server/common/MetadataVersion.class"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """The data from which every node of a new cluster starts."""

    checkpoint: bytes
    metadata_version: str
    """The metadata.version in full, e.g. "3.4-IV0"."""
    names_directories: bool
    """True if this release gives each data directory an id (KIP-858)."""
    voters: bytes | None = None
    """The snapshot of a dynamic quorum's first voters, with placeholders for them."""


def bootstrap_of(
    spec: KafkaSpec, *, release: Release, java: Java, warden: Warden, progress: Progress
) -> Bootstrap:
    """The bootstrap of a cluster of this release at the spec's metadata version.

    Raises UsageError, with the versions that it accepts, if the release does not accept this one,
    or if its quorum cannot be dynamic there.
    """
    if spec.quorum is Quorum.DYNAMIC and version_numbers(release.version) < _DYNAMIC_SINCE:
        raise UsageError(
            f"Kafka {release.version} has no dynamic quorum: it came with 3.9 (KIP-853)"
        )
    unstable = {**spec.settings, **spec.controller_settings}.get(_UNSTABLE, "false")
    asked = spec.metadata_version
    if asked is not None and not re.fullmatch(r"\d+\.\d+(-IV\d+)?", asked):
        raise UsageError(f'"{asked}" is not a metadata version, such as 3.4 or 3.5-IV1')

    def build(draft: Path) -> None:
        done = _run_tool(draft, spec, unstable=unstable, java=java, release=release, warden=warden)
        if done.exit_code == 0:
            _keep(draft, said=done.output)
            return
        if asked is not None:
            _refuse_dynamic(asked, said=done.output, release=release)
            own = replace(spec, metadata_version=None)
            newest = bootstrap_of(own, release=release, java=java, warden=warden, progress=progress)
            _refuse(asked, release=release, newest=newest.metadata_version)
        raise HarnessError(
            f"the StorageTool of Kafka {release.version} failed: {_last_line(done.output)}"
        )

    label = f"{asked or 'own'}{'-unstable' if unstable == 'true' else ''}"
    if spec.quorum is Quorum.DYNAMIC:
        label += f"-voters-{spec.controllers}{'-combined' if spec.combined else ''}"
    return kept(
        cache_dir() / "format" / f"{release.version}-{release.digest[:16]}" / label,
        read=_read,
        build=build,
        doing=f"formatting with the tool of Kafka {release.version}",
        progress=progress,
    )


def format_directory(
    data: Path,
    *,
    bootstrap: Bootstrap,
    cluster_id: str,
    node_id: int,
    directory_id: str | None,
    seat: VoterSeat | None = None,
) -> None:
    """Make a formatted data directory where none exists. `directory_id` None: a new one.

    `seat`: the node's place in the first voter set, if it has one. A directory of another id does
    not have it: it is formatted as one that may become a voter later.
    """
    meta = {"version": "1", "cluster.id": cluster_id, "node.id": str(node_id)}
    if bootstrap.names_directories:
        meta["directory.id"] = directory_id or new_id()
    data.mkdir(parents=True)
    (data / _CHECKPOINT).write_bytes(bootstrap.checkpoint)
    (data / _META).write_text("".join(f"{key}={value}\n" for key, value in meta.items()))
    if seat is not None and directory_id == seat.directory_id:
        (data / VOTERS).parent.mkdir()
        (data / VOTERS).write_bytes(seat.checkpoint)


def directory_id_of(data: Path) -> str | None:
    """The id of a formatted data directory; None if its release gives it none."""
    return _properties((data / _META).read_text()).get("directory.id")


def new_id() -> str:
    """A random id as Kafka writes them: 16 bytes in URL-safe base 64, not starting with a dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):  # a tool would take it for an option
            return text


def first_voters(nodes: Sequence[KafkaNode]) -> tuple[VoterNode, ...]:
    """The controllers as first voters, each with a directory id of its own."""
    return tuple(
        VoterNode(
            node_id=node.node_id,
            host=node.host_as(Role.CONTROLLER),
            port=node.ports[Listener.CONTROLLER],
            directory_id=new_id(),
        )
        for node in nodes
        if node.votes
    )


def _run_tool(
    draft: Path, spec: KafkaSpec, *, unstable: str, java: Java, release: Release, warden: Warden
) -> Completed:
    nodes = nodes_of(spec, ports=count())
    voters = placeholders(first_voters(first_members(spec, nodes)))
    dynamic = spec.quorum is Quorum.DYNAMIC
    first = voters[0]
    quorum = "bootstrap.servers" if dynamic else "voters"
    found_at = f"{first.host}:{first.port}" if dynamic else f"{first.node_id}@127.0.0.1:9093"
    config = draft / "controller.properties"
    config.write_text(
        f"process.roles=controller\nnode.id={first.node_id}\n"
        "controller.listener.names=CONTROLLER\nlisteners=CONTROLLER://127.0.0.1:9093\n"
        f"controller.quorum.{quorum}={found_at}\n"
        f"log.dirs={draft / 'data'}\n{_UNSTABLE}={unstable}\n"
    )
    wanted = ["--initial-controllers", stated(voters)] if dynamic else []
    if spec.metadata_version is not None:
        wanted += ["--release-version", spec.metadata_version]
    arguments = ("format", "--cluster-id", new_id(), "--config", str(config), *wanted)
    return run_command(
        tool_command(_TOOL, arguments, java=java, release=release),
        warden=warden,
        name="storage-tool",
        directory=draft,
        timeout_s=_TOOL_TIMEOUT_S,
    )


def _keep(draft: Path, *, said: str) -> None:
    """Note beside the tool's checkpoint what it said and wrote."""
    stated = re.search(r"with metadata\.version (\d+\.\d+-IV\d+)", said)
    if stated is None:
        raise HarnessError(f"the StorageTool did not state a metadata.version: {_last_line(said)}")
    meta = _properties((draft / "data" / _META).read_text())
    index = {"metadata_version": stated[1], "names_directories": "directory.id" in meta}
    (draft / _INDEX).write_text(json.dumps(index))


def _read(home: Path) -> Bootstrap | None:
    try:
        index = json.loads((home / _INDEX).read_text())
        return Bootstrap(
            checkpoint=(home / "data" / _CHECKPOINT).read_bytes(),
            metadata_version=index["metadata_version"],
            voters=voters.read_bytes() if (voters := home / "data" / VOTERS).exists() else None,
            names_directories=index["names_directories"],
        )
    except (OSError, ValueError, KeyError):
        return None


def _refuse(asked: str, *, release: Release, newest: str) -> None:
    """Raise UsageError if `asked` is not among the versions from the oldest to `newest`."""
    accepted = _accepted_versions(release, newest=newest)
    if asked not in {*accepted, *(version.partition("-")[0] for version in accepted)}:
        raise UsageError(
            f'Kafka {release.version} cannot start a cluster at metadata version "{asked}"; '
            f"it can at: {', '.join(accepted)}"
        )


def _refuse_dynamic(asked: str, *, said: str, release: Release) -> None:
    """Raise UsageError if the tool says that this metadata version is too old for kraft.version 1.

    3.9.0, 3.9.1 and 4.0.0 want level 21, which is 3.9-IV0; 3.9.2 and 4.3.1 take any.
    """
    if found := _NO_DYNAMIC.search(said):
        raise UsageError(
            f'Kafka {release.version} has no dynamic quorum at metadata version "{asked}": '
            f"{found[0]}"
        )


def _accepted_versions(release: Release, *, newest: str) -> list[str]:
    """Return what the release's own enumeration lists, except versions too old or not stable."""
    numbers: set[tuple[int, ...]] = set()
    for jar in release.jars:
        with zipfile.ZipFile(jar) as content:
            if _VERSION_ENUM in content.namelist():
                names = re.findall(rb"IBP_(\d+)_(\d+)_IV(\d+)", content.read(_VERSION_ENUM))
                numbers.update(tuple(int(number) for number in name) for name in names)
    last = tuple(int(number) for number in re.findall(r"\d+", newest))
    return [f"{a}.{b}-IV{c}" for a, b, c in sorted(numbers) if _OLDEST <= (a, b, c) <= last]


def _properties(text: str) -> dict[str, str]:
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {key: value for key, _, value in (line.partition("=") for line in lines)}


def _last_line(output: str) -> str:
    return (output.strip().splitlines() or ["no output"])[-1]
