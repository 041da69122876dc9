"""A key gets other replicas; the play goes on when the reassignment is done, or granted.

- reassign: {t-0: [1, 2, 4]}
- reassign: {t-0: [1, 2, 4]}
  awaited: false
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.clusters.kafka_port import Administers
from fencepost.clusters.port import Cluster
from fencepost.clusters.stage import Stage
from fencepost.history.failure import SpecError
from fencepost.nemesis.verbs.administration import admin_verb, broker_of, by_key
from fencepost.nemesis.verbs.step import Bounded
from fencepost.nemesis.verbs.step_source import StepSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassign(Bounded):
    """Give a key other replicas, and wait until the reassignment is done."""

    replicas: Mapping[str, tuple[int, ...]]
    awaited: bool = True
    """Whether it is waited for; else the play goes on once it is granted."""


def _own(written: StepSource) -> dict[str, Any]:
    data = by_key(written, "{t-0: [1, 2]}")
    replicas = {str(key): _brokers(one, written.stage) for key, one in data.items()}
    return {"replicas": replicas, "awaited": written.flag("awaited", unless_given=True)}


def _brokers(value: object, stage: Stage) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise SpecError((), f"expected a list of broker numbers, found {value!r}")
    return tuple(broker_of(item, stage) for item in value)


def _do(cluster: Cluster, step: Reassign) -> None:
    assert isinstance(cluster, Administers)
    for key, wanted in step.replicas.items():
        cluster.reassign(key, wanted, within_s=step.within_s, awaited=step.awaited)


VERBS = (
    admin_verb(
        "reassign",
        ("reassign: {t-0: [2, 1, 3]}",),
        Reassign,
        own=_own,
        operand=lambda step: {key: list(brokers) for key, brokers in step.replicas.items()},
        own_data=lambda step: {} if step.awaited else {"awaited": False},
        modifiers=("awaited",),
        do=_do,
        ability=Administers,
    ),
)
