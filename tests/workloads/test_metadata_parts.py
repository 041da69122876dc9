"""The small parts of the metadata workload: what it refuses, what it counts, what it is told."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from fencepost.clusters.port import NodeName
from fencepost.history.journal import EventJournal
from fencepost.workloads.clients.metadata_config import (
    MetadataConfig,
    read_metadata_config,
    write_metadata_config,
)
from fencepost.workloads.journalled import JournalTally
from fencepost.workloads.metadata_spec import MetadataSpec

SPEC = TypeAdapter(MetadataSpec)


def test_each_writer_needs_a_topic_of_its_own() -> None:
    with pytest.raises(ValidationError, match="each writer needs a topic of its own"):
        SPEC.validate_python({"writers": 4, "topics": 3})


def test_topics_have_replicas_between_the_bounds_and_no_more_than_there_are_brokers() -> None:
    spec = SPEC.validate_python({"replication_factor_min": 2, "replication_factor_max": 4})
    assert [spec.replication_factors(brokers=count) for count in (1, 3, 5)] == [
        range(1, 2),
        range(2, 4),
        range(2, 5),
    ]
    with pytest.raises(ValidationError, match="at least replication_factor_min, found 3 and 4"):
        SPEC.validate_python({"replication_factor_min": 4})


@pytest.mark.parametrize("wrong", [{"write_rate": 0}, {"topics": 0}, {"lives": 0}])
def test_what_cannot_be_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        SPEC.validate_python(wrong)


def test_a_configuration_is_read_as_it_was_written(tmp_path: Path) -> None:
    config = MetadataConfig(
        client="metadata-0",
        process=7,
        raw="/raw",
        origin_ns=5,
        brokers={NodeName("broker-1"): ("127.0.0.1", 9092)},
        spec=MetadataSpec(topics=9),
        seed=3,
    )
    write_metadata_config(tmp_path / "config.json", config)
    assert read_metadata_config(tmp_path / "config.json") == config


def test_the_tally_counts_what_is_whole_and_goes_on_from_there(tmp_path: Path) -> None:
    path = tmp_path / "metadata_writes.jsonl"
    tally = JournalTally(path)
    assert tally.counts().invoked == 0  # before the client is up
    with EventJournal(tmp_path, "metadata_writes") as journal:
        for outcome in ("ok", "info", "ok"):
            journal.end(journal.begin({"topic": "t"}), {"outcome": outcome})
        assert tally.counts().ok == 2
        journal.end(journal.begin({"topic": "t"}), {"outcome": "fail"})
        journal.begin({"topic": "t"})
    counts = tally.counts()
    assert (counts.invoked, counts.ok, counts.info, counts.fail) == (5, 2, 1, 1)
    with path.open("ab") as file:
        file.write(b'{"begin": 5, "to')
    assert tally.counts().invoked == 5
    with path.open("ab") as file:
        file.write(b'pic": "t"}\n')
    assert tally.counts().invoked == 6
