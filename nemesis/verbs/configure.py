"""Other properties for a node, as an operator edits its file: they hold from its next start on.

- configure: broker-2
  settings: {inter.broker.protocol.version: 2}
- restart: broker-2
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fencepost.clusters.evolution import ChangesSettings
from fencepost.clusters.port import Cluster, NodeName
from fencepost.history.failure import SpecError
from fencepost.nemesis.verbs.on_nodes import each, node_verb
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import NodeAction
from fencepost.nemesis.words import property_texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Configure(OnNodes):
    """Give each node other properties, which its next start reads."""

    settings: Mapping[str, str]


def _settings(written: StepSource) -> dict[str, object]:
    return {"settings": written.needed("settings", _properties)}


def _properties(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict) or not value:
        raise SpecError((), f"expected properties by their names, found {value!r}")
    return property_texts(value)


def _do(cluster: Cluster, node: NodeName, step: Configure) -> str:
    assert isinstance(cluster, ChangesSettings)
    return cluster.change_settings(node, step.settings)


VERBS = (
    node_verb(
        "configure",
        ("{configure: broker-1, settings: {replica.lag.time.max.ms: 4000}}",),
        Configure,
        NodeAction(do=each(_do), abilities=(ChangesSettings,)),
        modifiers=("settings",),
        own=_settings,
        own_data=lambda step: {"settings": dict(step.settings)},
    ),
)
