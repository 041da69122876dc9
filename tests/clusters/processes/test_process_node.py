"""A node keeps its books about its disk and its end, whatever its process is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.configuration import HOSTS, PROPERTIES, KafkaNode, Listener
from fencepost.clusters.kafka.formatting import Bootstrap, directory_id_of
from fencepost.clusters.kafka.prepared import KafkaPrepared
from fencepost.clusters.kafka.software import KafkaSoftware
from fencepost.clusters.kafka.voters import CHECKPOINT, VoterSeat
from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.processes.node import ProcessNode
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.releases import Release
from fencepost.history.failure import HarnessError, UsageError

SEAT = VoterSeat(directory_id="first", checkpoint=b"voters")
BOOTSTRAP = Bootstrap(checkpoint=b"", metadata_version="4.3-IV0", names_directories=True)


def node(directory: Path, warden: Warden, *, java: str = "/bin/true") -> ProcessNode:
    program = Java(home=Path("/"), executable=Path(java), version="17", build="", source="PATH")
    own = KafkaNode(name=NodeName("controller-1"), node_id=1001, ports={Listener.CONTROLLER: 9093})
    software = KafkaSoftware(
        node=own,
        prepared=KafkaPrepared(
            java=program,
            release=Release(name="4.3.1", version="4.3.1", jars=(), digest=""),
            bootstrap=BOOTSTRAP,
        ),
        cluster_id="c",
        options=(),
        seat=SEAT,
    )
    place = LocalHost(warden).place(own.name, directory=directory)
    return ProcessNode(own.name, place=place, software=software, staging=directory)


def is_voter(own: ProcessNode) -> bool:
    return (own.data / CHECKPOINT).exists()


def test_a_wiped_controller_is_no_voter_unless_its_disk_passes_for_the_old_one(
    tmp_path: Path, warden: Warden
) -> None:
    own = node(tmp_path, warden)
    own.format()
    assert (directory_id_of(own.data), is_voter(own)) == ("first", True)
    own.wipe(keep_directory_id=True)
    assert (directory_id_of(own.data), is_voter(own)) == ("first", True)
    own.wipe(keep_directory_id=False)
    another = directory_id_of(own.data)
    assert another != "first"
    assert not is_voter(own)
    own.wipe(keep_directory_id=True)
    assert (directory_id_of(own.data), is_voter(own)) == (another, False)


def test_what_is_kept_of_a_disk_outlives_it(tmp_path: Path, warden: Warden) -> None:
    own = node(tmp_path, warden)
    own.format()
    own.keep("version-2")  # is not there yet
    for words in ("first", "second"):
        log = own.data / "version-2" / "log.100000001"
        log.parent.mkdir()
        log.write_text(words)
        own.keep("version-2")
        own.wipe(keep_directory_id=False)
    found = {path.parent.name: path.read_text() for path in (tmp_path / "kept").glob("*/log.*")}
    assert found == {"0001": "first", "0002": "second"}


@pytest.mark.parametrize(
    ("java", "end"), [("/bin/false", "ended with exit code 1"), ("/bin/true", "with exit code 0")]
)
def test_a_node_that_ended_says_how(
    tmp_path: Path, warden: Warden, until: Callable[..., bool], java: str, end: str
) -> None:
    own = node(tmp_path, warden, java=java)
    own.configure({}, {PROPERTIES: "", HOSTS: ""})
    own.start()
    assert until(lambda: own.process.exit_code is not None)
    assert own.process.state() is NodeState.DOWN
    assert own.obituary().startswith("controller-1 ended")
    assert f"{end}: its log is empty ({tmp_path}/server.log)" in own.obituary()


def test_a_snapshot_comes_back_whole_and_one_that_was_not_made_is_refused(
    tmp_path: Path, warden: Warden
) -> None:
    own = node(tmp_path, warden)
    own.format()
    segment = own.data / "t-0" / "00000000000000000000.log"
    segment.parent.mkdir()
    segment.write_text("old")
    own.snapshot("monday")
    segment.write_text("new")
    (own.data / "u-0").mkdir()
    own.rollback("monday")
    assert segment.read_text() == "old"
    assert not (own.data / "u-0").exists()
    with pytest.raises(HarnessError, match="has no snapshot tuesday; it has: monday"):
        own.rollback("tuesday")
    with pytest.raises(UsageError, match="cannot name a snapshot"):
        own.snapshot("../elsewhere")


def test_the_files_that_a_loss_of_power_left_without_content_are_named(
    tmp_path: Path, warden: Warden
) -> None:
    own = node(tmp_path, warden)
    own.format()
    snapshot = own.data / "__cluster_metadata-0" / "00000000000000000007-0000000001.checkpoint"
    snapshot.parent.mkdir(exist_ok=True)
    snapshot.write_bytes(b"records")
    (snapshot.parent / "never-filled").touch()
    before = own.holdings()
    assert "content" not in before.loss(own.holdings())
    snapshot.write_bytes(b"")
    lost = before.loss(own.holdings())
    assert lost.endswith(
        "it lost 7 bytes of its logs and snapshots; left with a name and no content: "
        "__cluster_metadata-0/00000000000000000007-0000000001.checkpoint"
    )
