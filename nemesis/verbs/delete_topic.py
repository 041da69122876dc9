"""A topic is deleted, as an operator would.

- delete_topic: u
- await: {deleted: u}             # in the ZooKeeper generation it goes later than it is granted

Records of a topic are lost with it, and rightly: a topic of the clients is deleted only before
`start_clients`.
"""

from dataclasses import dataclass
from typing import Any

from fencepost.clusters.kafka_port import Administers
from fencepost.clusters.port import Cluster
from fencepost.nemesis.verbs.administration import admin_verb
from fencepost.nemesis.verbs.predicted_state import PredictedState
from fencepost.nemesis.verbs.step import Bounded
from fencepost.nemesis.verbs.step_source import StepSource


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopic(Bounded):
    """Have a topic deleted."""

    topic: str


def _own(written: StepSource) -> dict[str, Any]:
    return {"topic": written.name("delete_topic takes the name of a topic")}


def _do(cluster: Cluster, step: DeleteTopic) -> None:
    assert isinstance(cluster, Administers)
    cluster.delete_topic(step.topic, via=None, within_s=step.within_s)


def _follow(step: DeleteTopic, predicted: PredictedState) -> None:
    predicted.delete_topic(step.topic, word="delete_topic")


VERBS = (
    admin_verb(
        "delete_topic",
        ("create_topic: {name: u}", "delete_topic: u"),
        DeleteTopic,
        own=_own,
        operand=lambda step: step.topic,
        do=_do,
        ability=Administers,
        follow=_follow,
    ),
)
