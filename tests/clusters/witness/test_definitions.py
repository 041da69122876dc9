"""Definitions are found in whichever jar of the release has them."""

from pathlib import Path

import pytest
from disks import jar

from fencepost.clusters.witness.definitions import definitions_of
from fencepost.history.failure import HarnessError


def test_definitions_are_read_from_the_jars_of_kafka_alone(tmp_path: Path) -> None:
    found = jar(tmp_path / "kafka-metadata-9.9.9.jar")
    (tmp_path / "zstd-jni.jar").write_bytes(b"not read at all")
    definitions = definitions_of([tmp_path / "zstd-jni.jar", found])
    assert definitions.record_types == {
        2: "TopicRecord",
        5: "PartitionChangeRecord",
        20: "NoOpRecord",
    }


def test_jars_without_definitions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"no definition of a metadata record in no jar at all"):
        definitions_of([])
    with pytest.raises(HarnessError, match=rf"no definition .* in {tmp_path}: expected common/"):
        definitions_of([tmp_path / "other.jar"])


def test_a_jar_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    damaged = tmp_path / "kafka-metadata-1.jar"
    damaged.write_bytes(b"not a zip")
    with pytest.raises(HarnessError, match=f"cannot read {damaged}"):
        definitions_of([damaged])
