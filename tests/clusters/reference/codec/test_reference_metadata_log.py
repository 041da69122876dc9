"""The metadata log in Kafka's bytes: read back as it was, and read by the witness."""

from dataclasses import replace

import pytest
from wire_samples import BATCHES, RECORDS, SNAPSHOT

from fencepost.clusters.protocol.message_decoder import DecodeError
from fencepost.clusters.protocol.record_batches import scan_batches
from fencepost.clusters.protocol.records import records_of
from fencepost.clusters.reference.codec.metadata_log import (
    batches_in,
    encoded_batch,
    encoded_snapshot,
    scanned,
    snapshot_in,
)
from fencepost.clusters.reference.codec.metadata_records import encoded, record_in
from fencepost.clusters.reference.codec.record_definitions import definitions

_LOG = b"".join(encoded_batch(one) for one in BATCHES)


@pytest.mark.parametrize("index", range(len(RECORDS)))
def test_a_record_is_read_back_as_it_was(index: int) -> None:
    assert record_in(encoded(RECORDS[index])) == RECORDS[index]


def test_what_was_decided_together_is_one_batch() -> None:
    assert [batch.record_count for batch in scan_batches(_LOG).batches] == [1, len(RECORDS)]
    assert batches_in(_LOG) == BATCHES


def test_a_batch_is_there_as_a_whole_or_not_at_all() -> None:
    first = len(encoded_batch(BATCHES[0]))
    for size in range(len(_LOG)):
        found = [batch for batch, _ in scanned(_LOG[:size], scan_batches(_LOG[:size]))]
        assert found == list(BATCHES[: 1 if size >= first else 0])
    with pytest.raises(DecodeError):
        batches_in(_LOG[:-1])


def test_a_witness_reads_every_record_by_its_type() -> None:
    known = definitions()
    scan = scan_batches(_LOG)
    records = records_of(_LOG, scan.batches)
    assert records.damage is None
    assert known.control_record(records.key(0), records.value(0)).type == "LeaderChangeMessage"
    types = [known.metadata_record(records.value(index)).type for index in range(1, len(records))]
    assert types == [type(record).__name__ for record in RECORDS]


def test_a_snapshot_is_whole_with_its_footer_alone() -> None:
    data = encoded_snapshot(SNAPSHOT, time_ms=5)
    assert snapshot_in(data, end_offset=40, epoch=2) == SNAPSHOT
    without = data[: scan_batches(data).batches[-1].position]
    for cut in (b"", data[:-1], without):
        with pytest.raises(DecodeError):
            snapshot_in(cut, end_offset=40, epoch=2)


def test_nonsense_is_no_record() -> None:
    for value in (None, b"", b"\x01", b"\x01\x63\x00", b"\x01\x02\x00\x09", b"\xff" * 12):
        with pytest.raises(DecodeError):
            record_in(value)


def test_a_batch_keeps_the_time_of_its_leader() -> None:
    stamped = replace(BATCHES[1], time_ms=77)
    (found,) = batches_in(encoded_batch(stamped))
    assert found.time_ms == 77
