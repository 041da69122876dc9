"""Directories are formatted as Kafka's own tool does it, and impossible versions are refused."""

import re
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.clusters.hosts.command import Completed
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka import formatting
from fencepost.clusters.kafka.formatting import (
    Bootstrap,
    bootstrap_of,
    directory_id_of,
    format_directory,
    new_id,
)
from fencepost.clusters.kafka.voters import CHECKPOINT, VoterSeat
from fencepost.clusters.kafka_port import KafkaSpec, Quorum
from fencepost.clusters.provision.cache import CACHE_VARIABLE
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.releases import Release
from fencepost.history.failure import HarnessError, UsageError

JAVA = Java(home=Path("/java"), executable=Path("/java"), version="17", build="", source="PATH")
TOO_OLD = "kraft.version could not be set to 1 because it depends on metadata.version level 21"
BOOTSTRAP = Bootstrap(checkpoint=b"levels", metadata_version="3.9-IV0", names_directories=True)


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    """A release whose enumeration ends with a version that is not stable yet."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    names = [b"IBP_3_0_IV1", b"IBP_3_3_IV3", b"IBP_3_10_IV0", b"IBP_3_4_IV0", b"IBP_4_0_IV0"]
    with zipfile.ZipFile(tmp_path / "kafka-server-common.jar", "w") as jar:
        content = b"\x01".join(names)
        jar.writestr("org/apache/kafka/server/common/MetadataVersion.class", content)
    return Release(
        name="3.10.0",
        version="3.10.0",
        jars=(tmp_path / "kafka-server-common.jar",),
        digest="d" * 64,
    )


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The calls of a StorageTool whose own version is 3.10-IV0, and which knows 3.4 besides."""
    calls: list[list[str]] = []

    def run_command(argv: list[str], *, directory: Path, **_: object) -> Completed:
        calls.append(argv)
        asked = argv[-1] if "--release-version" in argv else "3.10"
        if "--initial-controllers" in argv and asked == "3.4":
            return Completed(exit_code=1, output=f"Exception: {TOO_OLD}\n\tat Formatter\n")
        if asked not in ("3.4", "3.10"):
            return Completed(exit_code=1, output=f"Version {asked} is not a valid version\n")
        (directory / "data").mkdir()
        if "--initial-controllers" in argv:
            (directory / "data" / CHECKPOINT).parent.mkdir()
            (directory / "data" / CHECKPOINT).write_bytes(b"voters")
        (directory / "data" / "bootstrap.checkpoint").write_bytes(asked.encode())
        (directory / "data" / "meta.properties").write_text("#\nversion=1\ndirectory.id=x\n")
        return Completed(exit_code=0, output=f"Formatting x with metadata.version {asked}-IV0.\n")

    monkeypatch.setattr(formatting, "run_command", run_command)
    return calls


def bootstrap(spec: KafkaSpec, release: Release, warden: Warden) -> Bootstrap:
    return bootstrap_of(spec, release=release, java=JAVA, warden=warden, progress=lambda _: None)


def test_the_tool_runs_once_for_each_metadata_version(
    release: Release, tool: list[list[str]], warden: Warden
) -> None:
    own = bootstrap(KafkaSpec(), release, warden)
    older = bootstrap(KafkaSpec(metadata_version="3.4"), release, warden)
    assert (own.checkpoint, own.metadata_version, own.names_directories) == (
        b"3.10",
        "3.10-IV0",
        True,
    )
    assert (older.checkpoint, older.metadata_version) == (b"3.4", "3.4-IV0")
    assert bootstrap(KafkaSpec(), release, warden) == own
    assert len(tool) == 2


def test_whether_unstable_versions_are_allowed_makes_a_difference(
    release: Release, tool: list[list[str]], warden: Warden
) -> None:
    bootstrap(KafkaSpec(), release, warden)
    unstable = {"unstable.feature.versions.enable": "true"}
    bootstrap(KafkaSpec(controller_settings=unstable), release, warden)
    assert len(tool) == 2


@pytest.mark.parametrize("version", ["9.9", "3.0", "4.0-IV0", "3.4-IV1"])
@pytest.mark.usefixtures("tool")
def test_a_version_that_the_release_does_not_accept_is_refused_with_those_it_does(
    release: Release, warden: Warden, version: str
) -> None:
    with pytest.raises(UsageError) as raised:
        bootstrap(KafkaSpec(metadata_version=version), release, warden)
    assert str(raised.value) == (
        f'Kafka 3.10.0 cannot start a cluster at metadata version "{version}"; '
        "it can at: 3.3-IV3, 3.4-IV0, 3.10-IV0"
    )


@pytest.mark.usefixtures("tool")
def test_a_tool_that_fails_on_an_accepted_version_is_not_the_users_error(
    release: Release, warden: Warden
) -> None:
    with pytest.raises(HarnessError) as raised:
        bootstrap(KafkaSpec(metadata_version="3.3"), release, warden)
    assert str(raised.value) == (
        "the StorageTool of Kafka 3.10.0 failed: Version 3.3 is not a valid version"
    )


@pytest.mark.parametrize("version", ["", "latest", "3", "3.4-IVx", "3.4.1", "../3.4"])
def test_what_is_no_metadata_version_is_refused_at_once(
    release: Release, tool: list[list[str]], warden: Warden, version: str
) -> None:
    with pytest.raises(UsageError, match="is not a metadata version, such as"):
        bootstrap(KafkaSpec(metadata_version=version), release, warden)
    assert tool == []


def test_the_tool_states_the_first_voters_of_a_dynamic_quorum(
    release: Release, tool: list[list[str]], warden: Warden
) -> None:
    static = bootstrap(KafkaSpec(controllers=3), release, warden)
    three = bootstrap(KafkaSpec(controllers=3, quorum=Quorum.DYNAMIC), release, warden)
    bootstrap(KafkaSpec(controllers=1, quorum=Quorum.DYNAMIC), release, warden)
    assert (static.voters, three.voters) == (None, b"voters")
    assert "--initial-controllers" not in tool[0]
    stated = [call[call.index("--initial-controllers") + 1] for call in tool[1:]]
    assert [re.findall(r"(\d+@[^:]+):", one) for one in stated] == [
        ["1001@controller-1.raft", "1002@controller-2.raft", "1003@controller-3.raft"],
        ["1001@controller-1.raft"],
    ]


def test_a_release_without_dynamic_quorums_is_refused_at_once(
    release: Release, tool: list[list[str]], warden: Warden
) -> None:
    older = replace(release, version="3.8.1")
    with pytest.raises(UsageError) as raised:
        bootstrap(KafkaSpec(quorum=Quorum.DYNAMIC), older, warden)
    assert str(raised.value) == "Kafka 3.8.1 has no dynamic quorum: it came with 3.9 (KIP-853)"
    assert tool == []


@pytest.mark.usefixtures("tool")
def test_a_metadata_version_too_old_for_a_dynamic_quorum_is_refused_in_the_tools_words(
    release: Release, warden: Warden
) -> None:
    with pytest.raises(UsageError) as raised:
        bootstrap(KafkaSpec(quorum=Quorum.DYNAMIC, metadata_version="3.4"), release, warden)
    assert str(raised.value) == (
        f'Kafka 3.10.0 has no dynamic quorum at metadata version "3.4": {TOO_OLD}'
    )


@pytest.mark.parametrize(("directory_id", "seats"), [("d", 1), ("e", 0), (None, 0)])
def test_only_the_directory_that_has_the_seat_is_formatted_as_a_voter(
    tmp_path: Path, directory_id: str | None, seats: int
) -> None:
    format_directory(
        tmp_path / "data",
        bootstrap=BOOTSTRAP,
        cluster_id="c",
        node_id=1001,
        directory_id=directory_id,
        seat=VoterSeat(directory_id="d", checkpoint=b"voters"),
    )
    assert (tmp_path / "data" / "bootstrap.checkpoint").exists()
    assert len(list((tmp_path / "data").glob(CHECKPOINT))) == seats


def test_a_formatted_directory_holds_three_ids_and_the_checkpoint(tmp_path: Path) -> None:
    data = tmp_path / "node" / "data"
    format_directory(data, bootstrap=BOOTSTRAP, cluster_id="c", node_id=7, directory_id="directory")
    assert (data / "bootstrap.checkpoint").read_bytes() == b"levels"
    assert (data / "meta.properties").read_text() == (
        "version=1\ncluster.id=c\nnode.id=7\ndirectory.id=directory\n"
    )
    assert directory_id_of(data) == "directory"


def test_each_directory_gets_an_id_of_its_own_if_the_release_names_them(tmp_path: Path) -> None:
    for name, names_directories in (("new", True), ("newer", True), ("old", False)):
        format_directory(
            tmp_path / name,
            bootstrap=Bootstrap(
                checkpoint=b"", metadata_version="3.4-IV0", names_directories=names_directories
            ),
            cluster_id="c",
            node_id=1,
            directory_id=None,
        )
    ids = [directory_id_of(tmp_path / name) for name in ("new", "newer", "old")]
    assert ids[0] != ids[1]
    assert ids[2] is None


def test_ids_are_as_kafka_writes_them() -> None:
    ids = {new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", text) for text in ids)
