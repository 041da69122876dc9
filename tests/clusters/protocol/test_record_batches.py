"""Batches come out as they were written, and nothing behind the first that is not whole."""

import gzip
import struct
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.records.readers import read_batch

from fencepost.clusters.protocol.compression import Compression, RecordError, compression_of
from fencepost.clusters.protocol.record_batches import (
    BatchHeader,
    BatchScan,
    Stop,
    batch_at,
    encoded_batch_header,
    scan_batches,
)
from fencepost.clusters.protocol.record_encoding import Header, encoded_record
from fencepost.clusters.protocol.records import Records, records_of

# A leader change and the first records of a new cluster, as a controller of 4.3.1 wrote them.
LEADER_CHANGE = bytes.fromhex(
    "00000000000000000000004f0000000102bccb80e9002000000000000001a1fe805562000001a1fe805562ff"
    "ffffffffffffffffffffffffff000000013a0000000800000002260000000003e902000003e90002000003e9"
    "000000"
)
BOOTSTRAP = bytes.fromhex(
    "00000000000000010000013e00000001020615ba1b000000000008000001a1fe8056c4000001a1fe8056c4ff"
    "ffffffffffffffffffffffffff000000093c000000013001170001001212426f6f747374726170207265636f"
    "726473003a000002012e010c00116d657461646174612e76657273696f6e001e00005a000004014e010c0021"
    "656c696769626c652e6c65616465722e7265706c696361732e76657273696f6e00010000340000060128010c"
    "000e67726f75702e76657273696f6e00010000340000080128010c000e73686172652e76657273696f6e0001"
    "00003800000a012c010c001073747265616d732e76657273696f6e000100004000000c0134010c0014747261"
    "6e73616374696f6e2e76657273696f6e000200004400000e01380104000401146d696e2e696e73796e632e72"
    "65706c69636173023100001400001001080118000000"
)
CONTROL, TRANSACTIONAL, LOG_APPEND_TIME = 0x20, 0x10, 0x08

Content = tuple[bytes | None, bytes | None, tuple[Header, ...]]
CONTENT = st.tuples(
    st.none() | st.binary(max_size=200),
    st.none() | st.binary(max_size=200),
    st.lists(st.tuples(st.binary(max_size=9), st.none() | st.binary(max_size=9)), max_size=2).map(
        tuple
    ),
)
BATCHES = st.lists(st.lists(CONTENT, max_size=5), max_size=5)


def body_of(contents: Sequence[Content]) -> bytes:
    return b"".join(
        encoded_record(
            offset_delta=delta,
            timestamp_delta_ms=10 * delta,
            key=key,
            value=value,
            headers=headers,
        )
        for delta, (key, value, headers) in enumerate(contents)
    )


def batch(
    body: bytes, *, count: int, base_offset: int = 0, attributes: int = 0, leader_epoch: int = 3
) -> bytes:
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        leader_epoch=leader_epoch,
        magic=2,
        crc=0,
        attributes=attributes,
        last_offset_delta=max(count - 1, 0),
        base_timestamp_ms=1_700_000_000_000,
        max_timestamp_ms=1_700_000_009_999,
        producer_id=7,
        producer_epoch=2,
        base_sequence=40,
        record_count=count,
        position=0,
    )
    return encoded_batch_header(header, body) + body


def log(batches: Sequence[Sequence[Content]]) -> bytes:
    parts, offset = [], 0
    for contents in batches:
        parts.append(batch(body_of(contents), count=len(contents), base_offset=offset))
        offset += max(len(contents), 1)
    return b"".join(parts)


def read(data: bytes) -> Records:
    return records_of(data, scan_batches(data).batches)


def contents_of(records: Records) -> list[Content]:
    return [
        (records.key(index), records.value(index), records.headers(index))
        for index in range(len(records))
    ]


def test_what_a_controller_wrote_is_read_field_by_field() -> None:
    scan = scan_batches(LEADER_CHANGE + BOOTSTRAP)
    assert scan.stop is None
    assert scan.end == 421
    change, bootstrap = scan.batches
    assert (change.base_offset, change.last_offset, change.record_count) == (0, 0, 1)
    assert (change.leader_epoch, change.crc, change.size_bytes) == (1, 3167453417, 91)
    assert (change.control, change.transactional, change.compression) == (True, False, 0)
    assert (change.producer_id, change.producer_epoch, change.base_sequence) == (-1, -1, -1)
    assert (bootstrap.position, bootstrap.base_offset, bootstrap.last_offset) == (91, 1, 9)
    assert (bootstrap.control, bootstrap.crc) == (False, 102087195)
    records = read(LEADER_CHANGE + BOOTSTRAP)
    assert records.offsets.tolist() == list(range(10))
    assert records.timestamps_ms.tolist() == [1795271185762] + [1795271186116] * 9
    assert records.key(0) == b"\x00\x00\x00\x02"
    assert records.key(1) is None
    assert records.value(9) == b"\x01\x18\x00\x00"
    assert records.of_batches("leader_epoch").tolist() == [1] * 10


@given(batches=BATCHES)
def test_any_records_are_read_as_they_were_written(batches: list[list[Content]]) -> None:
    data = log(batches)
    assert scan_batches(data).stop is None
    records = read(data)
    assert records.damage is None
    assert contents_of(records) == [content for contents in batches for content in contents]
    assert records.batch_index.tolist() == [
        index for index, contents in enumerate(batches) for _ in contents
    ]


@given(contents=st.lists(CONTENT, min_size=1, max_size=6))
def test_another_implementation_reads_the_same(contents: list[Content]) -> None:
    data = batch(body_of(contents), count=len(contents), base_offset=100)
    theirs, size = read_batch(data, 0)
    assert size == len(data)
    ours = read(data)
    [header] = ours.batches
    assert (theirs.crc, theirs.producer_id, theirs.base_sequence) == (header.crc, 7, 40)
    assert [record.offset for record in theirs.records] == ours.offsets.tolist()
    assert [
        (record.key, record.value, tuple((one.key, one.value) for one in record.headers))
        for record in theirs.records
    ] == contents_of(ours)


@settings(max_examples=3 * settings().max_examples // 10)
@given(batches=BATCHES, data=st.data())
def test_a_torn_tail_ends_a_scan_at_the_last_whole_batch(
    batches: list[list[Content]], data: st.DataObject
) -> None:
    whole = log(batches)
    ends = [one.position + one.size_bytes for one in scan_batches(whole).batches]
    cut = data.draw(st.integers(0, len(whole)))
    scan = scan_batches(whole[:cut])
    assert [one.position + one.size_bytes for one in scan.batches] == [
        end for end in ends if end <= cut
    ]
    if scan.end == cut:
        assert scan.stop is None
    else:
        assert scan.stop is not None
        assert scan.stop.torn
        # With the bytes it asks for, it gets further: at least to the header, which tells the rest.
        assert cut + scan.stop.missing_bytes <= len(whole)
        assert scan.stop.missing_bytes > 0


@settings(max_examples=3 * settings().max_examples // 10)
@given(batches=BATCHES.filter(any), data=st.data())
def test_no_changed_byte_goes_unnoticed(batches: list[list[Content]], data: st.DataObject) -> None:
    whole = bytearray(log(batches))
    first_size = scan_batches(bytes(whole)).batches[0].size_bytes
    # The checksum covers what follows it; base offset and leader epoch are the broker's to change.
    place = data.draw(st.integers(21, first_size - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    scan = scan_batches(bytes(whole))
    assert (scan.batches, scan.end) == ((), 0)
    assert scan.stop is not None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({16: b"\x01"}, "a batch of format 1, expected 2"),
        ({8: b"\x00\x00\x00\x00"}, "a batch of 0 bytes"),
        ({8: b"\x7f\xff\xff\xff"}, "a batch of 2147483647 bytes"),
        ({0: b"\xff"}, "a batch of 1 records from offset -"),
        ({17: b"\x00\x00\x00\x00"}, "checksum of the batch at offset 0: stated 0x00000000, found"),
    ],
)
def test_what_is_no_batch_is_named(change: dict[int, bytes], reason: str) -> None:
    data = bytearray(LEADER_CHANGE)
    for place, new in change.items():
        data[place : place + len(new)] = new
    stop = scan_batches(bytes(data)).stop
    assert stop is not None
    assert stop.reason.startswith(reason)
    assert not stop.torn


def test_zeros_at_the_end_of_a_file_are_no_batch() -> None:
    scan = scan_batches(LEADER_CHANGE + bytes(100))
    assert len(scan.batches) == 1
    assert scan == BatchScan(
        batches=scan.batches,
        end=len(LEADER_CHANGE),
        stop=Stop(reason="a batch of format 0, expected 2", torn=False),
    )


def test_a_header_is_read_without_its_records() -> None:
    found = batch_at(BOOTSTRAP[:61], 0)
    assert isinstance(found, BatchHeader)
    assert found.last_offset == 9


def snappy(body: bytes) -> bytes:
    return bytes(pa.compress(body, codec="snappy", asbytes=True))


def xerial(body: bytes) -> bytes:
    """As Java's library frames it, in blocks of 10 bytes."""
    blocks = [snappy(body[start : start + 10]) for start in range(0, len(body), 10)]
    framed = b"".join(struct.pack(">i", len(block)) + block for block in blocks)
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + framed


def streamed(body: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(body)
    return bytes(sink.getvalue().to_pybytes())


CONTENTS: list[Content] = [(None, b"a" * 70, ()), (b"k", None, ((b"h", b"1"),)), (None, b"", ())]


@pytest.mark.parametrize(
    ("codec", "compressed"),
    [
        (Compression.GZIP, gzip.compress(body_of(CONTENTS))),
        (Compression.SNAPPY, snappy(body_of(CONTENTS))),
        (Compression.SNAPPY, xerial(body_of(CONTENTS))),
        (Compression.LZ4, streamed(body_of(CONTENTS), "lz4")),
        (Compression.ZSTD, streamed(body_of(CONTENTS), "zstd")),
    ],
    ids=["gzip", "snappy", "xerial", "lz4", "zstd"],
)
def test_every_codec_is_read(codec: Compression, compressed: bytes) -> None:
    data = log([CONTENTS]) + batch(compressed, count=3, base_offset=3, attributes=codec)
    records = read(data)
    assert records.damage is None
    assert contents_of(records) == CONTENTS * 2
    assert records.offsets.tolist() == list(range(6))
    assert [one.compression for one in records.batches] == [Compression.NONE, codec]


@pytest.mark.parametrize(
    ("attributes", "body", "reason"),
    [
        (1, b"not gzip", "not gzip: "),
        (2, b"\xff\xff\xff\xff\x7f", "a snappy block of "),
        (2, b"\x82SNAPPY\x00" + bytes(8) + b"\x00\x00\x01\x00x", "a snappy block of 256 bytes, 1 "),
        (2, b"", "not snappy: "),
        (3, b"not lz4", "not lz4: "),
        (4, b"not zstd", "not zstd: "),
        (6, b"", "compressed with codec 6, which Kafka does not have"),
        (0, b"", "it has fewer records than it says"),
        (0, b"\x80", "it has fewer records than it says"),
        (0, b"\x0a\x00\x00\x00\x01", "a record of 5 bytes does not fit in it"),
        (0, b"\x01\x00\x00\x00\x01", "a record of -1 bytes does not fit in it"),
        (0, b"\x0a\x00\x00\x00\x09\x01", "a key or value has less than no bytes"),
        (0, b"\x0a\x00\x00\x00\x08\x01", "a field reaches past the end of its record"),
        (0, b"\x0c\x00\x00\x00\x01\x08\x00", "a field reaches past the end of its record"),
        (0, b"\x0c\x00\x00\x00\x01\x01\x00\x00", "1 bytes are left behind its last record"),
    ],
)
def test_a_batch_that_cannot_be_read_ends_the_records_and_is_named(
    attributes: int, body: bytes, reason: str
) -> None:
    bad = batch(body, count=1, base_offset=3, attributes=attributes)
    records = read(log([CONTENTS]) + bad + batch(body_of(CONTENTS), count=3, base_offset=4))
    assert records.damage is not None
    assert records.damage.startswith(f"the batch at offset 3: {reason}")
    assert contents_of(records) == CONTENTS
    assert len(records.batches) == 1


def test_no_bytes_make_the_reader_fail() -> None:
    @given(body=st.binary(max_size=60), count=st.integers(0, 9), attributes=st.integers(0, 7))
    def check(body: bytes, count: int, attributes: int) -> None:
        records = read(batch(body, count=count, attributes=attributes))
        for index in range(len(records)):
            records.key(index)
            records.value(index)
            try:
                records.headers(index)
            except RecordError as error:
                assert "headers at offset" in str(error)  # noqa: PT017 -- most bytes are headers

    check()


def test_the_time_is_the_appends_where_the_topic_says_so() -> None:
    body = body_of(CONTENTS)
    created = batch(body, count=3)
    appended = batch(body, count=3, base_offset=3, attributes=LOG_APPEND_TIME)
    assert read(created + appended).timestamps_ms.tolist() == [
        *(1_700_000_000_000, 1_700_000_000_010, 1_700_000_000_020),
        *[1_700_000_009_999] * 3,
    ]


def test_flags_are_told_apart() -> None:
    marker = batch(body_of(CONTENTS[:1]), count=1, attributes=CONTROL | TRANSACTIONAL)
    data = marker + batch(body_of(CONTENTS[:1]), count=1, base_offset=1, attributes=TRANSACTIONAL)
    records = read(data)
    assert records.of_batches("control").tolist() == [1, 0]
    assert records.of_batches("transactional").tolist() == [1, 1]
    assert records.of_batches("producer_id").tolist() == [7, 7]


def test_a_batch_that_compaction_emptied_keeps_its_offsets() -> None:
    data = log([[], CONTENTS])
    assert [one.last_offset for one in scan_batches(data).batches] == [0, 3]
    assert read(data).offsets.tolist() == [1, 2, 3]


def test_the_first_batches_alone_have_their_records_alone() -> None:
    records = read(log([CONTENTS, CONTENTS[:1], CONTENTS]))
    assert records.first_batches(2).offsets.tolist() == [0, 1, 2, 3]
    assert contents_of(records.first_batches(2)) == CONTENTS + CONTENTS[:1]
    assert len(records.first_batches(0)) == 0


def test_a_codec_without_a_number_is_refused() -> None:
    with pytest.raises(RecordError, match="codec 5"):
        compression_of(5)
