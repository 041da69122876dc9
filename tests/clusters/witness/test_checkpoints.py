"""The small files in which a broker keeps offsets."""

from pathlib import Path

import pytest
from disks import checkpoint

from fencepost.clusters.witness.checkpoints import (
    LeaderEpoch,
    Offsets,
    read_leader_epochs,
    read_offsets,
    read_topic_id,
)


def test_offsets_are_by_partition(tmp_path: Path) -> None:
    checkpoint(tmp_path / "replication-offset-checkpoint", "t 0 12", "a-b.c 10 0")
    found = read_offsets(tmp_path / "replication-offset-checkpoint")
    assert found == Offsets(by_key={"t-0": 12, "a-b.c-10": 0})


def test_leader_epochs_are_in_order(tmp_path: Path) -> None:
    checkpoint(tmp_path / "leader-epoch-checkpoint", "0 0", "4 120")
    assert read_leader_epochs(tmp_path) == (
        (
            LeaderEpoch(leader_epoch=0, start_offset=0),
            LeaderEpoch(leader_epoch=4, start_offset=120),
        ),
        None,
    )


@pytest.mark.parametrize("content", [None, ""])
def test_a_file_that_was_never_written_has_no_entries(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "leader-epoch-checkpoint").write_text(content)
    assert read_leader_epochs(tmp_path) == ((), None)
    assert read_offsets(tmp_path / "leader-epoch-checkpoint") == Offsets()


@pytest.mark.parametrize(
    "content", ["0\n", "1\n0\n", "0\n2\nt 0 1\n", "0\n1\nt 0\n", "0\n1\nt 0 x\n", "\x00" * 30]
)
def test_what_is_no_checkpoint_is_a_damage(tmp_path: Path, content: str) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text(content)
    offsets = read_offsets(tmp_path / "leader-epoch-checkpoint")
    assert offsets.by_key == {}
    assert offsets.damage is not None
    assert offsets.damage.startswith("leader-epoch-checkpoint: ")
    (tmp_path / "leader-epoch-checkpoint").write_text(content.replace("t ", ""))
    epochs, damage = read_leader_epochs(tmp_path)
    assert epochs == () or damage is None
    if content != "0\n1\nt 0 1\n":
        assert damage is not None


def test_a_partition_names_its_topic_id(tmp_path: Path) -> None:
    assert read_topic_id(tmp_path) is None
    (tmp_path / "partition.metadata").write_text("version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw")
    assert read_topic_id(tmp_path) == "AAECAwQFBgcICQoLDA0ODw"
