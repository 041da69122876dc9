"""A bit flipped on the disk of a node that is down: its place, its old value, and its effect.

The bit is drawn among those whose loss can be noticed: in a log, what the checksum of a batch
covers, and not the twelve bytes before it or the leader epoch, which nothing protects; in an index,
the entries that are there. Of a replica's log it is drawn beyond the recovery point where there is
something: those batches a broker reads of its own accord when it recovers from an unclean end.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.clusters.kafka_port import FlippedPart
from fencepost.clusters.protocol.record_batches import BatchHeader, scan_batches
from fencepost.clusters.witness.checkpoints import read_offsets
from fencepost.clusters.witness.segments import segments_of
from fencepost.history.failure import HarnessError

_METADATA: Final = "__cluster_metadata-0"
_RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
_CRC_COVERS_FROM: Final = 21


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spot:
    """A stretch of a file in which a bit may be flipped."""

    file: Path
    begin: int
    end: int
    what: str


def flip_bit(data: Path, part: FlippedPart, *, seed: int) -> str:
    """Flip a bit in a data directory that no process uses; return file, place and bytes, in words.

    Raises HarnessError if the directory has nothing of that part.
    """
    draw = random.Random(seed)  # noqa: S311 -- a choice, no secret
    spots = _spots(data, part)
    if not spots:
        raise HarnessError(f"{data} has nothing of a {part} in which a bit could be flipped")
    spot = draw.choice(spots)
    place, bit = draw.randrange(spot.begin, spot.end), draw.randrange(8)
    with spot.file.open("r+b") as file:
        file.seek(place)
        old = file.read(1)[0]
        new = old ^ (1 << bit)
        file.seek(place)
        file.write(bytes([new]))
    return (
        f"bit {bit} of byte {place} of {spot.file.relative_to(data)} is flipped, "
        f"{old:#04x} to {new:#04x}, in {spot.what}"
    )


def _spots(data: Path, part: FlippedPart) -> Sequence[_Spot]:
    replicas = sorted(path.name for path in data.glob("*-*") if path.is_dir())
    match part:
        case FlippedPart.METADATA:
            return _batches_of(data / _METADATA, beyond=0)
        case FlippedPart.INDEX:
            return [spot for name in replicas for spot in _index_of(data / name)]
        case FlippedPart.SEGMENT:
            points = read_offsets(data / _RECOVERY_POINTS).by_key
            own = [name for name in replicas if name != _METADATA]
            unlooked = [
                spot
                for name in own
                for spot in _batches_of(data / name, beyond=points.get(name, 0))
            ]
            return unlooked or [spot for name in own for spot in _batches_of(data / name, beyond=0)]


def _batches_of(log: Path, *, beyond: int) -> list[_Spot]:
    segments = segments_of(log)
    if not segments:
        return []
    path = segments[-1].path
    return [
        _spot(path, batch, recovered=batch.base_offset >= beyond > 0)
        for batch in scan_batches(path.read_bytes()).batches
        if batch.last_offset >= beyond
    ]


def _spot(path: Path, batch: BatchHeader, *, recovered: bool) -> _Spot:
    where = ", beyond the recovery point" if recovered else ""
    return _Spot(
        file=path,
        begin=batch.position + _CRC_COVERS_FROM,
        end=batch.position + batch.size_bytes,
        what=f"the batch of offsets {batch.base_offset}..{batch.last_offset}{where}",
    )


def _index_of(log: Path) -> list[_Spot]:
    segments = segments_of(log)
    if not segments:
        return []
    path = segments[-1].path.with_suffix(".index")
    size = len(path.read_bytes().rstrip(b"\x00")) if path.exists() else 0
    return [_Spot(file=path, begin=0, end=size, what="its entries")] if size else []
