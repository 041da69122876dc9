"""A node's copy of the metadata log, as rows of METADATA_LOG.

Controllers write `__cluster_metadata-0`, brokers replicate it; both lie on disk alike. A log that
begins at offset 0 is the whole story. Once a node has deleted old segments, or has fetched a
snapshot because the others had, the story begins with a snapshot `<end offset>-<epoch>.checkpoint`
in the same directory: of those that the log goes on from without a gap, the oldest is taken, since
it leaves most of the history. (`bootstrap.checkpoint` lies elsewhere: it is what a controller of a
new cluster copies into its log.)

What a log holds at its end may not be committed: that only the quorum knows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from clusters.port import NodeName
from clusters.protocol.metadata_records import Definitions, MetadataRecord
from clusters.witness.metadata_rows import columns_of
from clusters.witness.segments import Piece, read_batches_file, read_log, segments_of
from history.cluster_schema import METADATA_LOG

__all__ = ["METADATA_DIRECTORY", "MetadataPiece", "decoded", "read_metadata_log"]

METADATA_DIRECTORY: Final = "__cluster_metadata-0"
_SNAPSHOT: Final = re.compile(r"(\d{20})-\d{10}\.checkpoint")
_FOOTER: Final = "SnapshotFooterRecord"
_DIGEST_BYTES: Final = 8
_PIECE_BYTES: Final = 1 << 20
"""A record of 50 bytes becomes a row of 35 columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataPiece:
    """The rows of a piece of a node's log, and what was met that should not be."""

    rows: pa.Table
    damages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    path: Path
    end_offset: int


def read_metadata_log(
    node: NodeName, data: Path, *, definitions: Definitions
) -> Iterator[MetadataPiece]:
    """The log of a node with this data directory, by the piece; first a snapshot, if it needs one.

    It never fails: what cannot be read is a damage.
    """
    directory = data / METADATA_DIRECTORY
    segments = segments_of(directory)
    if not segments:
        yield _only(f"no metadata log: there is no segment in {directory}")
        return
    topics: dict[str, str] = {}
    first_offset = segments[0].base_offset
    snapshot, damages = _snapshot_for(directory, first_offset, definitions)
    if damages:
        yield _only(*damages)
    if snapshot is not None:
        offset = snapshot.end_offset - 1
        for piece in read_batches_file(snapshot.path, piece_bytes=_PIECE_BYTES):
            yield _rows(node, piece, definitions, topics, snapshot_offset=offset)
    # Where a snapshot ends the log begins; what may still lie before it counts as deleted.
    start = first_offset if snapshot is None else snapshot.end_offset
    for piece in read_log(directory, from_offset=start, piece_bytes=_PIECE_BYTES):
        yield _rows(node, piece, definitions, topics, start=start)


def decoded(piece: Piece, index: int, definitions: Definitions) -> MetadataRecord:
    """Return one record of a piece of a metadata log."""
    records = piece.records
    if records.batches[records.batch_index[index]].control:
        return definitions.control_record(records.key(index), records.value(index))
    return definitions.metadata_record(records.value(index))


def _snapshot_for(
    directory: Path, first_offset: int, definitions: Definitions
) -> tuple[_Snapshot | None, tuple[str, ...]]:
    damages: list[str] = []
    for snapshot in _snapshots(directory):
        # A log from 0 needs none; a snapshot at 0 holds the first voters (KIP-853).
        if snapshot.end_offset < first_offset or (first_offset == 0 < snapshot.end_offset):
            continue
        if (damage := _damage_of(snapshot, definitions)) is None:
            return snapshot, tuple(damages)
        damages.append(damage)
    if first_offset > 0:
        damages.append(f"the log begins at offset {first_offset} and no snapshot goes before it")
    return None, tuple(damages)


def _snapshots(directory: Path) -> list[_Snapshot]:
    try:
        paths = sorted(directory.iterdir())
    except OSError:
        return []  # its segments were listed a moment ago; that they are gone is noted with them
    return [
        _Snapshot(path=path, end_offset=int(found[1]))
        for path in paths
        if (found := _SNAPSHOT.fullmatch(path.name))
    ]


def _damage_of(snapshot: _Snapshot, definitions: Definitions) -> str | None:
    """Return why a snapshot cannot be used; None if it is whole, that is, ends with its footer."""
    last: Piece | None = None
    for piece in read_batches_file(snapshot.path):
        if piece.damage is not None:
            return piece.damage
        last = piece if len(piece.records) else last
    if last is None or decoded(last, len(last.records) - 1, definitions).type != _FOOTER:
        return f"{snapshot.path.name}: it has no footer"
    return None


def _rows(
    node: NodeName,
    piece: Piece,
    definitions: Definitions,
    topics: dict[str, str],
    *,
    snapshot_offset: int | None = None,
    start: int = 0,
) -> MetadataPiece:
    records = piece.records
    offsets, timestamps = records.offsets.tolist(), records.timestamps_ms.tolist()
    batch_of = records.batch_index.tolist()
    rows: list[dict[str, Any]] = []
    for index, offset in enumerate(offsets):
        if snapshot_offset is None and offset < start:
            continue
        record = decoded(piece, index, definitions)
        if record.type == "TopicRecord":
            topics[record.fields["topicId"]] = record.fields["name"]
        value = records.value(index)
        rows.append(
            {
                "node": node,
                "snapshot": snapshot_offset is not None,
                "metadata_offset": offset if snapshot_offset is None else snapshot_offset,
                "controller_epoch": records.batches[batch_of[index]].leader_epoch,
                "timestamp_ms": timestamps[index],
                "digest": _digest(value),
                "raw": None if record.known else value,
                **columns_of(record, topics=topics),
            }
        )
    damages = () if piece.damage is None else (piece.damage,)
    return MetadataPiece(rows=pa.Table.from_pylist(rows, schema=METADATA_LOG), damages=damages)


def _digest(value: bytes | None) -> int:
    return int.from_bytes(sha256(value or b"").digest()[:_DIGEST_BYTES], signed=True)


def _only(*damages: str) -> MetadataPiece:
    return MetadataPiece(rows=METADATA_LOG.empty_table(), damages=damages)
