"""The cluster uses what a metadata.version allows from now on, or no more than that.

- finalise: '4.3'                # the metadata.version, and with it the levels of all features
"""

from dataclasses import dataclass

from fencepost.clusters.evolution import Finalises
from fencepost.clusters.port import Cluster
from fencepost.nemesis.release_course import parse_version
from fencepost.nemesis.verbs.administration import admin_verb
from fencepost.nemesis.verbs.predicted_state import PredictedState
from fencepost.nemesis.verbs.step import Bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalise(Bounded):
    """Have the cluster use a metadata.version."""

    version: str
    """E.g. "4.3" or "3.9-IV0": the level of each feature becomes that of a new cluster of it."""


def _do(cluster: Cluster, step: Finalise) -> None:
    assert isinstance(cluster, Finalises)
    cluster.finalise(step.version, within_s=step.within_s)


def _follow(step: Finalise, predicted: PredictedState) -> None:
    predicted.releases.finalise(step.version, members=sorted(predicted.members))


VERBS = (
    admin_verb(
        "finalise",
        ("finalise: '4.3'",),
        Finalise,
        own=lambda written: {"version": parse_version(written.operand)},
        operand=lambda step: step.version,
        do=_do,
        ability=Finalises,
        follow=_follow,
    ),
)
