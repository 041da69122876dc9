"""Logs, snapshots and whole data directories by hand, as a node would leave them."""

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fencepost.clusters.protocol.record_batches import BatchHeader, encoded_batch_header
from fencepost.clusters.protocol.record_encoding import encoded_record

COMMIT, ABORT = b"\x00\x00\x00\x01", b"\x00\x00\x00\x00"
CONTROL, TRANSACTIONAL = 0x20, 0x10
TIME_MS = 1_700_000_000_000

TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
TOPIC_ID_BYTES = bytes(range(16))


def batch(
    values: Sequence[bytes | None],
    *,
    base_offset: int,
    leader_epoch: int = 0,
    attributes: int = 0,
    key: bytes | None = None,
    producer_id: int = -1,
) -> bytes:
    """A batch of records, a millisecond apart."""
    body = b"".join(
        encoded_record(offset_delta=delta, timestamp_delta_ms=delta, key=key, value=value)
        for delta, value in enumerate(values)
    )
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        leader_epoch=leader_epoch,
        magic=2,
        crc=0,
        attributes=attributes,
        last_offset_delta=len(values) - 1,
        base_timestamp_ms=TIME_MS,
        max_timestamp_ms=TIME_MS + len(values) - 1,
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 0,
        base_sequence=-1,
        record_count=len(values),
        position=0,
    )
    return encoded_batch_header(header, body) + body


def ours(value: int, *, size: int = 16) -> bytes:
    """A value as clients of a run write it."""
    return value.to_bytes(8, "little") + bytes(size - 8)


def segment(directory: Path, base_offset: int, *batches: bytes) -> Path:
    """A segment of a log."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{base_offset:020}.log"
    path.write_bytes(b"".join(batches))
    return path


def snapshot(directory: Path, end_offset: int, epoch: int, *values: bytes) -> Path:
    """A snapshot: header, records, footer."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{end_offset:020}-{epoch:010}.checkpoint"
    whole = [
        batch([SNAPSHOT_END], base_offset=0, attributes=CONTROL, key=b"\x00\x00\x00\x03"),
        batch(values, base_offset=1, leader_epoch=epoch),
        batch(
            [SNAPSHOT_END],
            base_offset=1 + len(values),
            attributes=CONTROL,
            key=b"\x00\x00\x00\x04",
        ),
    ]
    path.write_bytes(b"".join(whole))
    return path


def checkpoint(path: Path, *entries: str) -> None:
    """One of the small files in which a broker keeps offsets."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("0", str(len(entries)), *entries)) + "\n")


SNAPSHOT_END = b"\x00\x00\x00"
"""Version 0, no tags: our small definitions give header and footer nothing else."""


def topic_record(name: str, topic_id: bytes = TOPIC_ID_BYTES) -> bytes:
    return b"\x01\x02\x00" + bytes([len(name) + 1]) + name.encode() + topic_id + b"\x00"


def change_record(partition: int, *, isr: Sequence[int], leader: int | None = None) -> bytes:
    ids = bytes([len(isr) + 1]) + b"".join(one.to_bytes(4) for one in isr)
    tags = [b"\x00" + bytes([len(ids)]) + ids]
    if leader is not None:
        tags.append(b"\x01\x04" + leader.to_bytes(4, signed=True))
    return (
        b"\x01\x05\x00"
        + partition.to_bytes(4)
        + TOPIC_ID_BYTES
        + bytes([len(tags)])
        + b"".join(tags)
    )


def no_op() -> bytes:
    return b"\x01\x14\x00\x00"


def _tagged(name: str, kind: str, tag: int, **rest: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "versions": "0+",
        "taggedVersions": "0+",
        "tag": tag,
        **rest,
    }


def _plain(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": "0+"}


_IDS = {"default": "null", "nullableVersions": "0+"}
_RECORDS: dict[str, tuple[int | None, list[dict[str, Any]]]] = {
    "TopicRecord": (2, [_plain("Name", "string"), _plain("TopicId", "uuid")]),
    "PartitionChangeRecord": (
        5,
        [
            _plain("PartitionId", "int32"),
            _plain("TopicId", "uuid"),
            _tagged("Isr", "[]int32", 0, **_IDS),
            _tagged("Leader", "int32", 1, default="-2"),
            _tagged("LeaderRecoveryState", "int8", 5, default="-1"),
        ],
    ),
    "NoOpRecord": (20, []),
    "SnapshotHeaderRecord": (None, [_plain("Version", "int16")]),
    "SnapshotFooterRecord": (None, [_plain("Version", "int16")]),
}


def jar(path: Path) -> Path:
    """A jar of Kafka's, with the definitions of a few records."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, (type_key, fields) in _RECORDS.items():
            kind = "data" if type_key is None else "metadata"
            folder = "message" if type_key is None else "metadata"
            text = {
                "name": name,
                "type": kind,
                "validVersions": "0",
                "flexibleVersions": "0+",
                "fields": fields,
                **({} if type_key is None else {"apiKey": type_key}),
            }
            archive.writestr(f"common/{folder}/{name}.json", "// a licence\n" + json.dumps(text))
        archive.writestr("common/message/FetchRequest.json", "not for a witness")
        archive.writestr("kafka/Kafka.class", io.BytesIO(b"\xca\xfe").getvalue())
    return path
