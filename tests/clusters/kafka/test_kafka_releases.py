"""Releases old and new start at any metadata version they know, formatted as by their tool."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from fencepost.clusters.hosts.command import run_command
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.formatting import format_directory, new_id
from fencepost.clusters.kafka.launch import tool_command
from fencepost.clusters.kafka.prepared import KafkaPrepared
from fencepost.clusters.kafka_port import KafkaSpec, Role
from fencepost.clusters.port import NodeName
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.failure import HarnessError

ROLES = (Role.CONTROLLER, Role.BROKER)

pytestmark = pytest.mark.kafka

RunCluster = Callable[..., AbstractContextManager[KafkaCluster]]
Prepare = Callable[[KafkaSpec], KafkaPrepared]


@pytest.mark.parametrize(
    ("release", "asked", "metadata_version"),
    [
        ("3.3.2", None, "3.3-IV3"),
        ("3.4.1", None, "3.4-IV0"),
        ("3.9.2", "3.4", "3.4-IV0"),
        ("4.3.1", "3.3", "3.3-IV3"),
    ],
)
def test_a_release_starts_at_the_metadata_version_that_was_asked_for(
    run_cluster: RunCluster, release: str, asked: str | None, metadata_version: str
) -> None:
    spec = KafkaSpec(brokers=1, release=release, metadata_version=asked)
    with run_cluster(spec) as cluster:
        cluster.create_topics([TopicSpec(name="t", replication_factor=1)])
        assert cluster.view().partitions["t-0"].leader == 1
        assert cluster.leader_now() == "controller-1"
        assert cluster.versions["metadata_version"] == metadata_version
        [log] = cluster.logs(NodeName("controller-1"))
        said = log.read_text()
    assert f"Kafka version: {release}" in said
    # 3.9.2 calls it by its level, the others by its name.
    assert metadata_version in said or "metadata.version at level" in said


CONFIG = {
    Role.CONTROLLER: (
        "process.roles=controller\nnode.id=7\ncontroller.listener.names=CONTROLLER\n"
        "listeners=CONTROLLER://127.0.0.1:9093\ncontroller.quorum.voters=7@127.0.0.1:9093\n"
    ),
    Role.BROKER: (
        "process.roles=broker\nnode.id=7\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:9092\ncontroller.quorum.voters=8@127.0.0.1:9093\n"
    ),
}


def meta_of(data: Path) -> dict[str, str]:
    lines = (data / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


@pytest.mark.parametrize("release", ["3.4.1", "4.3.1"])
@pytest.mark.parametrize("role", ROLES)
def test_a_directory_is_formatted_as_by_kafkas_own_tool(
    tmp_path: Path, warden: Warden, prepared: Prepare, release: str, role: Role
) -> None:
    ready = prepared(KafkaSpec(release=release))
    cluster_id = new_id()
    config = tmp_path / "server.properties"
    config.write_text(f"{CONFIG[role]}log.dirs={tmp_path}/theirs\n")
    done = run_command(
        tool_command(
            "kafka.tools.StorageTool",
            ("format", "--cluster-id", cluster_id, "--config", str(config)),
            java=ready.java,
            release=ready.release,
        ),
        warden=warden,
        name="tool",
        directory=tmp_path,
        timeout_s=60,
    )
    assert done.exit_code == 0
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    format_directory(
        ours,
        bootstrap=ready.bootstrap,
        cluster_id=cluster_id,
        node_id=7,
        directory_id=meta_of(theirs).get("directory.id"),
    )
    assert sorted(path.name for path in ours.iterdir()) == sorted(
        path.name for path in theirs.iterdir()
    )
    assert meta_of(ours) == meta_of(theirs)
    checkpoints = [(data / "bootstrap.checkpoint").read_bytes() for data in (ours, theirs)]
    # Between the frames, whose checksums cover the times of writing, stand the same levels.
    assert len(checkpoints[0]) == len(checkpoints[1])
    assert feature_records(checkpoints[0]) == feature_records(checkpoints[1])


def feature_records(checkpoint: bytes) -> list[bytes]:
    """The parts that name a feature, with the level that follows."""
    names = (b"metadata.version", b"group.version", b"transaction.version")
    return [checkpoint[at : at + 24] for name in names if (at := checkpoint.find(name)) >= 0]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            KafkaSpec(brokers=1, release="3.4.1", broker_settings={"num.io.threads": "many"}),
            r"broker-1 ended with exit code 1: .*Invalid value many for .*broker-1/server.log",
        ),
        (
            KafkaSpec(brokers=1, release="3.4.1", java_options=("-XX:+NoSuchOption",)),
            # Both die of it; whichever is gone first is named.
            r"(controller|broker)-1 ended with exit code 1: Unrecognized VM option 'NoSuchOption'",
        ),
    ],
    ids=["a setting", "a JVM option"],
)
def test_a_node_that_dies_at_its_start_is_named_with_the_reason_and_the_log(
    run_cluster: RunCluster, spec: KafkaSpec, words: str
) -> None:
    with pytest.raises(HarnessError, match=words), run_cluster(spec):
        pytest.fail("started")
