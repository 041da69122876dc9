"""The first voter set of a dynamic quorum (KIP-853, kraft.version 1).

A voter is known by its node id *and* the id of its directory, so that a controller which lost its
disk is not taken for the voter it was. Each voter of a new cluster starts with a snapshot of end
offset 0 in its metadata log that names them all; whoever is formatted later starts without one, as
an observer.

The snapshot is the StorageTool's own. It is made once, for placeholders, and here the ids and ports
of a cluster are put in their places: each has as many bytes as what it replaces.
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fencepost.clusters.protocol.record_batches import (
    HEADER_BYTES,
    Stop,
    batch_at,
    encoded_batch_header,
)
from fencepost.history.failure import HarnessError

CHECKPOINT: Final = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
"""The path of the snapshot in a data directory."""

_FIRST_PLACEHOLDER_PORT: Final = 65001


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterNode:
    """A member of the first voter set."""

    node_id: int
    host: str
    port: int
    directory_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterSeat:
    """A controller's place in the first voter set: for the directory of this id alone."""

    directory_id: str
    checkpoint: bytes


def placeholders(voters: Sequence[VoterNode]) -> tuple[VoterNode, ...]:
    """The same nodes, with ports and directory ids that depend on nothing but their number."""
    return tuple(
        replace(
            voter,
            port=_FIRST_PLACEHOLDER_PORT + number,
            directory_id=_text(f"placeholder-{number:04}".encode()),
        )
        for number, voter in enumerate(voters)
    )


def stated(voters: Sequence[VoterNode]) -> str:
    """Return the voters as the StorageTool's `--initial-controllers` takes them."""
    return ",".join(f"{one.node_id}@{one.host}:{one.port}:{one.directory_id}" for one in voters)


def checkpoint_of(template: bytes, voters: Sequence[VoterNode]) -> bytes:
    """The snapshot that names these voters, from the one that names their placeholders.

    Raises HarnessError if the template is not of the kind expected.
    """
    filled = template
    for placeholder, voter in zip(placeholders(voters), voters, strict=True):
        filled = _with(filled, _raw(voter.directory_id), instead=_raw(placeholder.directory_id))
        filled = _with(filled, _address(voter), instead=_address(placeholder))
    return b"".join(_checksummed(filled))


def _with(data: bytes, new: bytes, *, instead: bytes) -> bytes:
    assert len(new) == len(instead)
    if (count := data.count(instead)) != 1:
        raise HarnessError(
            "the StorageTool's snapshot of the first voters is not as expected: "
            f"it has {instead!r} {count} times, not once"
        )
    return data.replace(instead, new)


def _checksummed(data: bytes) -> Iterator[bytes]:
    """The batches, with checksums that fit what is in them now."""
    position = 0
    while position < len(data):
        batch = batch_at(data, position)
        if isinstance(batch, Stop):
            raise HarnessError(f"the StorageTool's snapshot of the first voters: {batch.reason}")
        body = data[position + HEADER_BYTES : position + batch.size_bytes]
        yield encoded_batch_header(batch, body) + body
        position += batch.size_bytes


def _address(voter: VoterNode) -> bytes:
    return voter.host.encode() + voter.port.to_bytes(2)


def _raw(directory_id: str) -> bytes:
    return base64.urlsafe_b64decode(f"{directory_id}==")


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
