"""The followers that may join an ISR, by the metadata their leader has applied (KIP-841, KIP-903).

Kafka also proposes a follower whose fetches carry no broker epoch though the level asks for one;
here it waits until they do, which they do once it has applied that level.
"""

from clusters.reference.nodes.levels import LEVEL_EPOCHS
from clusters.reference.nodes.replicas.remote import Remote
from clusters.reference.nodes.situation import Situation

__all__ = ["is_eligible", "is_joining", "proposed_epoch"]


def is_eligible(remote: Remote, situation: Situation) -> bool:
    """Return whether it is alive, and registered under the epoch that it would join with."""
    known = situation.image.brokers.get(remote.broker_id)
    if known is None or known.fenced or known.in_controlled_shutdown:
        return False
    return situation.level < LEVEL_EPOCHS or proposed_epoch(remote, situation) == known.broker_epoch


def is_joining(now: int, remote: Remote, situation: Situation) -> bool:
    """Return whether it is about to join: it may, and had everything a moment ago."""
    lag_ns = now - remote.caught_up_ns
    return lag_ns <= situation.configuration.replica_lag_max_ns and is_eligible(remote, situation)


def proposed_epoch(remote: Remote, situation: Situation) -> int:
    """The broker epoch that a follower is proposed with; -1: it is not checked."""
    if situation.level < LEVEL_EPOCHS:
        return -1
    # Rule epoch_from_fetch.
    if situation.rules.epoch_from_fetch:
        return remote.broker_epoch
    known = situation.image.brokers.get(remote.broker_id)
    return -1 if known is None else known.broker_epoch
