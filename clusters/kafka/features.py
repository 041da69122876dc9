"""The levels of a cluster's features: what a new cluster would have, what is finalised, and moves.

A metadata.version is what an operator names; it implies a level of every other feature, which the
StorageTool writes into the bootstrap checkpoint of a new cluster. To finalise a version means here:
to have each feature at the level that a new cluster of that version has. A feature that such a
cluster has not gets level 0. The kraft.version is left alone: it is no operator's to take back.

Source: KIP-584, KIP-778 (metadata.version), KIP-1022 (levels that a metadata.version implies).
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.update_features.v1.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.schema.update_features.v1.response import UpdateFeaturesResponse
from kio.static.primitive import i8, i16, i32Timedelta

from fencepost.clusters.kafka.admin_requests import Answered, Write, answer_of
from fencepost.clusters.kafka.multi_node_requests import ask
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.metadata_records import Definitions
from fencepost.clusters.protocol.record_batches import scan_batches
from fencepost.clusters.protocol.records import records_of
from fencepost.clusters.protocol.talking import Address
from fencepost.clusters.witness.metadata_log import decoded
from fencepost.clusters.witness.segments import BatchRun

Levels = Mapping[str, int]
"""The levels by the name of the feature; one that is not there has level 0."""

_OWN_WAYS: Final = "kraft.version"
_LEVEL: Final = "FeatureLevelRecord"
_UPGRADE: Final = i8(1)
_SAFE_DOWNGRADE: Final = i8(2)
_ASK: Final = ApiVersionsRequest(client_software_name="fencepost", client_software_version="0")
_TIMEOUT_S: Final = 2.0


def levels_in(checkpoint: bytes, *, definitions: Definitions) -> Levels:
    """The levels that a bootstrap checkpoint states."""
    return dict(_stated(checkpoint, definitions))


def finalised_by(nodes: Mapping[NodeName, Address]) -> dict[NodeName, Levels]:
    """The finalised levels as each node that answers knows them."""
    answers = ask(nodes, _ASK, ApiVersionsResponse, timeout_s=_TIMEOUT_S)
    return {
        node: {one.name: int(one.max_version_level) for one in answer.finalized_features}
        for node, answer in answers.items()
    }


def moves(now: Levels, wanted: Levels) -> Levels:
    """The features whose level has to move, with the level that each gets."""
    names = sorted({*now, *wanted} - {_OWN_WAYS})
    return {name: wanted.get(name, 0) for name in names if now.get(name, 0) != wanted.get(name, 0)}


def update_features(now: Levels, moved: Levels, *, timeout_s: float) -> Write:
    """Move these features; down only as far as nothing of what was written is lost by it."""
    updates = tuple(
        FeatureUpdateKey(
            feature=name,
            max_version_level=i16(level),
            upgrade_type=_UPGRADE if level > now.get(name, 0) else _SAFE_DOWNGRADE,
        )
        for name, level in moved.items()
    )
    timeout = i32Timedelta.parse(timedelta(milliseconds=int(timeout_s * 1000)))
    request = UpdateFeaturesRequest(timeout=timeout, feature_updates=updates)
    return Write(request=request, response_type=UpdateFeaturesResponse, answered=_answered)


def _answered(response: UpdateFeaturesResponse) -> Answered:
    """The first thing that is wrong; releases differ in where they say so."""
    for result in response.results:
        if result.error_code is not ErrorCode.none:
            return answer_of(result.error_code, f"{result.feature}: {result.error_message}")
    return answer_of(response.error_code, response.error_message)


def _stated(checkpoint: bytes, definitions: Definitions) -> Iterator[tuple[str, int]]:
    records = records_of(checkpoint, scan_batches(checkpoint).batches)
    piece = BatchRun(records=records, damage=records.damage)
    for index in range(len(records)):
        record = decoded(piece, index, definitions)
        if record.type == _LEVEL:
            yield str(record.fields["name"]), int(record.fields["featureLevel"])
