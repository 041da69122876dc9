"""The configuration that a node gets at its start, as values; times are ns of its own clock.

`properties.py` reads them from a file with the property names of KIP-631 and Kafka.
"""

from dataclasses import dataclass, field
from typing import Final

from fencepost.clusters.reference.nodes.records import Listener

MS: Final = 1_000_000
S: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A node: who it is, who the voters are, and its bounds."""

    node_id: int
    is_controller: bool
    """Else it is a broker; a process has one role here."""
    voters: tuple[int, ...]
    cluster_id: str
    listeners: tuple[Listener, ...] = ()
    """The listeners as a broker registers them; the first one is for clients."""
    rack: str | None = None
    level: int = 3
    """The metadata.version that the first active controller of a new cluster writes."""
    level_min: int = 1
    """The metadata.versions that this node supports."""
    level_max: int = 3
    seed: int = 0
    """The seed of a node's draws (its election time-outs), with its id and its incarnation's."""

    heartbeat_interval_ns: int = 2_000 * MS
    """registration.heartbeat.interval.ms."""
    lease_timeout_ns: int = 18_000 * MS
    """registration.lease.timeout.ms."""
    registration_timeout_ns: int = 60_000 * MS
    """initial.broker.registration.timeout.ms: a broker not registered by then ends."""
    quorum_fetch_timeout_ns: int = 2_000 * MS
    """controller.quorum.fetch.timeout.ms."""
    election_timeout_ns: int = 1_000 * MS
    """controller.quorum.election.timeout.ms; the draw is between it and twice as much."""
    election_backoff_max_ns: int = 1_000 * MS
    """controller.quorum.election.backoff.max.ms."""
    quorum_request_timeout_ns: int = 2_000 * MS
    """controller.quorum.request.timeout.ms."""
    retry_backoff_ns: int = 20 * MS
    """controller.quorum.retry.backoff.ms."""
    retry_backoff_max_ns: int = 1_000 * MS
    """controller.quorum.retry.backoff.max.ms."""
    metadata_max_wait_ns: int = 500 * MS
    """The longest time that a metadata fetch is parked."""
    metadata_snapshot_records: int = 10_000
    """The record count at which a snapshot is taken, and the log cut."""
    snapshot_piece_max: int = 1 << 20
    """The largest piece in which a snapshot is fetched: bytes, in virtual time records."""
    noop_interval_ns: int = 500 * MS
    """metadata.max.idle.interval.ms: an idle leader appends a record that often; 0: never."""

    replica_lag_max_ns: int = 30_000 * MS
    """replica.lag.time.max.ms."""
    replica_fetch_wait_ns: int = 500 * MS
    """replica.fetch.wait.max.ms."""
    replica_fetch_backoff_ns: int = 200 * MS
    """replica.fetch.backoff.ms."""
    request_timeout_ns: int = 30_000 * MS
    """controller.socket.timeout.ms, replica.socket.timeout.ms: a request without an answer."""
    fetch_sessions_max: int = 1_000
    """max.incremental.fetch.session.cache.slots; there are none in virtual time."""
    fetch_records_max: int = 1 << 30
    """Records in one answer; the simulator's bound."""
    checkpoint_interval_ns: int = 5_000 * MS
    """replica.high.watermark.checkpoint.interval.ms."""
    flush_records: int = 0
    """log.flush.interval.messages: sync a log whenever this many records came; 0: never."""
    min_insync_replicas: int = 1
    """The min.insync.replicas of topics that do not set it."""
    auto_leader_rebalance_ns: int = 0
    """leader.imbalance.check.interval: preferred leaders are elected that often; 0: never."""
    topic_defaults: tuple[tuple[str, str], ...] = field(default=())
    """Further settings that describing a topic shows."""
