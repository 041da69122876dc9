"""The settings of a scenario, by Kafka's property names, as the configuration of a simulated node.

Defaults are those that the harness gives Kafka's nodes, so that a play has the time it expects. A
setting of Kafka's that means nothing here (the JVM's heap, sockets, the cleaner) is left out, and
named to whoever asks.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from clusters.reference.configuration import MS, Configuration, S

__all__ = ["DEFAULTS", "configured", "ignored"]

_FIELDS: Final[Mapping[str, tuple[str, int]]] = {
    "registration.heartbeat.interval.ms": ("heartbeat_interval_ns", MS),
    "broker.heartbeat.interval.ms": ("heartbeat_interval_ns", MS),
    "registration.lease.timeout.ms": ("lease_timeout_ns", MS),
    "broker.session.timeout.ms": ("lease_timeout_ns", MS),
    "initial.broker.registration.timeout.ms": ("registration_timeout_ns", MS),
    "controller.quorum.fetch.timeout.ms": ("quorum_fetch_timeout_ns", MS),
    "controller.quorum.election.timeout.ms": ("election_timeout_ns", MS),
    "controller.quorum.election.backoff.max.ms": ("election_backoff_max_ns", MS),
    "controller.quorum.request.timeout.ms": ("quorum_request_timeout_ns", MS),
    "controller.quorum.retry.backoff.ms": ("retry_backoff_ns", MS),
    "controller.quorum.retry.backoff.max.ms": ("retry_backoff_max_ns", MS),
    "metadata.max.idle.interval.ms": ("noop_interval_ns", MS),
    "replica.lag.time.max.ms": ("replica_lag_max_ns", MS),
    "replica.fetch.wait.max.ms": ("replica_fetch_wait_ns", MS),
    "replica.fetch.backoff.ms": ("replica_fetch_backoff_ns", MS),
    "replica.socket.timeout.ms": ("request_timeout_ns", MS),
    "controller.socket.timeout.ms": ("request_timeout_ns", MS),
    "replica.high.watermark.checkpoint.interval.ms": ("checkpoint_interval_ns", MS),
    "log.flush.interval.messages": ("flush_records", 1),
    "min.insync.replicas": ("min_insync_replicas", 1),
    "leader.imbalance.check.interval.seconds": ("auto_leader_rebalance_ns", S),
}
"""Field of `Configuration` and its unit, by property."""

DEFAULTS: Final[Mapping[str, str]] = {
    # As the harness starts Kafka: a fault shows within seconds.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "300",
    "replica.lag.time.max.ms": "3000",
}


def configured(settings: Mapping[str, str], **known: Any) -> Configuration:
    """The configuration with these settings over the defaults, and the rest of its fields.

    Raises ValueError for a number that is none.
    """
    found: dict[str, Any] = {}
    for name, value in {**DEFAULTS, **settings}.items():
        if name in _FIELDS:
            field, unit = _FIELDS[name]
            try:
                found[field] = int(value) * unit
            except ValueError:
                raise ValueError(f"{name}: expected a whole number, found {value!r}") from None
    assert found.keys() | known.keys() <= {field.name for field in fields(Configuration)}
    return Configuration(**{**found, **known})


def ignored(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Those of the settings that mean nothing here."""
    return tuple(sorted(name for name in settings if name not in _FIELDS))
