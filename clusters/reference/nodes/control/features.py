"""Feature levels: metadata.version, the only one here.

Source: KIP-584, KIP-778; Kafka's `FeatureControlManager`.
"""

from fencepost.clusters.reference.nodes.control.decision import Decision, DecisionView
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.levels import METADATA_VERSION
from fencepost.clusters.reference.nodes.messages.control import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from fencepost.clusters.reference.nodes.records import FeatureLevelRecord


def first_features(view: DecisionView) -> tuple[FeatureLevelRecord, ...]:
    """Return what the first active controller of a new cluster writes; nothing in an old one."""
    if METADATA_VERSION in view.image.features:
        return ()
    return (FeatureLevelRecord(METADATA_VERSION, view.configuration.level),)


def updated(view: DecisionView, request: UpdateFeaturesRequest) -> Decision:
    """Decide that all levels change, or none, with the reason."""
    features = view.image.features
    for name, level in request.updates:
        words = _refusal(view, name, level)
        if words:
            error = Error.INVALID_UPDATE_VERSION
            response = UpdateFeaturesResponse(request.correlation, error, words)
            return Decision(response=response)
    return Decision(
        response=UpdateFeaturesResponse(request.correlation, Error.NONE),
        records=tuple(
            FeatureLevelRecord(name, level)
            for name, level in dict(request.updates).items()
            if features.get(name) != level
        ),
    )


def _refusal(view: DecisionView, name: str, level: int) -> str:
    """A level goes up only, and to what this controller and every registered broker supports."""
    own = view.configuration
    if name != METADATA_VERSION:
        return f"there is no feature {name}"
    if level < view.image.level:
        return f"{name} cannot go back from {view.image.level} to {level}"
    if not own.level_min <= level <= own.level_max:
        return f"controller {own.node_id} does not support {name} {level}"
    for broker_id, broker in sorted(view.image.brokers.items()):
        supported = any(
            name == feature and least <= level <= most for feature, least, most in broker.features
        )
        if not supported:
            return f"broker {broker_id} does not support {name} {level}"
    return ""
