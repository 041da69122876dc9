"""The facts of a run that a kernel needs in addition to the tables of the cluster."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from fencepost.checkers.anomaly import Found
from fencepost.history.clock import EVERY_NODE, ClockSkew
from fencepost.history.manifest import Manifest, Promises
from fencepost.history.roles import BROKER, CONTROLLER, ZOOKEEPER, role_of

Tables = Mapping[str, pa.Table]
"""The tables by the names of `history.schema.TABLES`; one that was not recorded is empty."""

Judged = Iterable[tuple[str, Found]]
"""The findings of a check by key: a topic-partition or another subject, such as "broker-2"."""

_NS_A_SECOND: Final = 1_000_000_000
_NS_A_MILLISECOND: Final = 1_000_000
_CLOCK_STEP_NS: Final = 100 * _NS_A_MILLISECOND
_DRIFT_SHARE: Final = 1000
_VIRTUAL: Final = "simulated"
"""The beginning of the names of all clusters in virtual time."""


def _unknown(_timestamp_ms: int) -> Sequence[int]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The manifest's facts that checks of the cluster's tables need. Times are ns of the run."""

    node_ids: Mapping[str, int]
    """Kafka's id of each node; -1 for one that had several during the run."""
    last_ids: Mapping[str, int] = field(default_factory=dict)
    """The last id of each that had several."""
    second_roles: Mapping[str, str] = field(default_factory=dict)
    """The roles that nodes have besides the one they are named for, by node."""
    origin_utc_ns: int = 0
    healed_ns: int | None = None
    end_ns: int | None = None
    stuck_isr_limit_ns: int = 0
    metadata_settle_ns: int = 0
    """The time without faults that must pass before a read of the ISR is held to an age."""
    metadata_age_max_ns: int = 0
    """The greatest age of such a read."""
    acks: str = "all"
    leases: bool = False
    """Brokers end their own leases."""
    bounds: Mapping[str, float] = field(default_factory=dict)
    """The bounds that the scenario demands (`history.manifest.Manifest.required_bounds`)."""
    keys: tuple[str, ...] = ()
    """The keys of the run; a cluster has others of its own."""
    recorded: tuple[str, ...] = ()
    """The tables that it set out to record."""
    clocks_drift: bool = True
    """True if wall clocks may drift unseen: not in virtual time, which has one clock, nor where a
    run compared its own clock with the machine's."""
    skews: tuple[ClockSkew, ...] = ()
    """The skews of nodes whose clocks may give the metadata log its times: not of those that are
    brokers alone."""
    followings_ms: Callable[[int], Sequence[int]] = field(
        default=_unknown, compare=False, repr=False
    )
    """The timestamps of the batches of the metadata log that follow those with this timestamp: by
    then all their records had been appended."""

    def time_ns(self, timestamp_ms: int) -> int:
        """Return the run's time of a Kafka timestamp, as far as the wall clock kept step."""
        return timestamp_ms * _NS_A_MILLISECOND - self.origin_utc_ns

    def earliest_ns(self, timestamp_ms: int) -> int:
        """Return the run's time before which a record with that timestamp was surely not appended.

        It is the beginning of the record's batch.
        """
        return self.time_ns(self.first_ms(timestamp_ms)) - self._slack_ns(timestamp_ms)

    def latest_ns(self, timestamp_ms: int) -> int:
        """Return the run's time by which a record with that timestamp had surely been appended.

        A batch is open for a while, or for long if its controller stands still. The one that
        follows may have its timestamp by a clock that was put behind.
        """
        times_ms = (timestamp_ms, *self.followings_ms(timestamp_ms))
        return (
            max(map(self.taken_by_ns, times_ms)) if self.skews else self.taken_by_ns(max(times_ms))
        )

    def taken_by_ns(self, timestamp_ms: int) -> int:
        """Return the run's time after which a clock surely did not show that timestamp."""
        return self.time_ns(self.last_ms(timestamp_ms)) + self._slack_ns(timestamp_ms)

    def first_ms(self, timestamp_ms: int) -> int:
        """Return the earliest that a right clock may have shown when the timestamp was taken.

        The timestamp itself, unless a clock that was put wrong may have shown it at another time.
        """
        return min((timestamp_ms, *(first for first, _ in self._others_ms(timestamp_ms))))

    def last_ms(self, timestamp_ms: int) -> int:
        """Return the latest that a right clock may have shown then."""
        return max((timestamp_ms, *(last for _, last in self._others_ms(timestamp_ms))))

    def is_dubious(self, from_ns: int, until_ns: int) -> bool:
        """Return whether a wrong clock may have moved timestamps out of that time, or into it."""
        return any(
            skew.from_ns + min(0, skew.ahead_min_ns) <= until_ns
            and skew.until_ns + max(0, skew.ahead_max_ns) >= from_ns
            for skew in self.skews
        )

    def _others_ms(self, timestamp_ms: int) -> Iterator[tuple[int, int]]:
        """Yield from when to when each wrong clock may have shown the timestamp, by a right one."""
        time_ns, slack_ns = self.time_ns(timestamp_ms), self._slack_ns(timestamp_ms)
        for skew in self.skews:
            first_ns = max(time_ns - skew.ahead_max_ns, skew.from_ns - slack_ns)
            last_ns = min(time_ns - skew.ahead_min_ns, skew.until_ns + slack_ns)
            if first_ns <= last_ns:
                yield (
                    (first_ns + self.origin_utc_ns) // _NS_A_MILLISECOND,
                    -(-(last_ns + self.origin_utc_ns) // _NS_A_MILLISECOND),
                )

    def _slack_ns(self, timestamp_ms: int) -> int:
        """Return how far wall and run clock may be apart: a step, and twice the drift of NTP.

        They drift where they are tied to each other at the start of the run alone (nodes on other
        machines). In virtual time they are one: in trials, brokers' clocks gain half a thousandth
        for a minute, which is within the step.
        """
        apart_ns = abs(self.time_ns(timestamp_ms)) // _DRIFT_SHARE if self.clocks_drift else 0
        return _CLOCK_STEP_NS + apart_ns

    @property
    def controllers(self) -> tuple[str, ...]:
        """The nodes that vote on metadata: controllers or, where there are none, ZooKeeper's."""
        voting = ZOOKEEPER if self.on_zookeeper else CONTROLLER
        return tuple(node for node in self.node_ids if voting in self._roles_of(node))

    @property
    def on_zookeeper(self) -> bool:
        """True if ZooKeeper has the metadata, and no controllers of Kafka's own do."""
        return ZOOKEEPER in self._roles and CONTROLLER not in self._roles

    @property
    def migrating(self) -> bool:
        """True if controllers have the metadata and brokers still start from ZooKeeper."""
        return {ZOOKEEPER, CONTROLLER} <= self._roles

    @property
    def _roles(self) -> frozenset[str]:
        return frozenset(role for node in self.node_ids for role in self._roles_of(node))

    def _roles_of(self, node: str) -> tuple[str, ...]:
        return _roles_of(node, self.second_roles)

    @property
    def brokers(self) -> tuple[str, ...]:
        """The nodes that hold partitions."""
        return tuple(node for node in self.node_ids if BROKER in self._roles_of(node))

    def nodes(self) -> Mapping[int, str]:
        """Return the name of each Kafka id that is one node's alone."""
        return {kafka_id: node for node, kafka_id in self.node_ids.items() if kafka_id >= 0}

    def nodes_at_the_end(self) -> Mapping[int, str]:
        """Return the node of each Kafka id at the end of the run, whose disk is that broker's."""
        ids = {**self.node_ids, **self.last_ids}
        return {kafka_id: node for node, kafka_id in ids.items() if kafka_id >= 0}


def facts_of(manifest: Manifest) -> Facts:
    """Return the facts that the manifest holds."""
    limit_ns = int(manifest.stuck_isr_limit_s * _NS_A_SECOND)
    settle_ns, age_max_ns = _settled_ns(manifest.promises) or (limit_ns, limit_ns)
    return Facts(
        node_ids=dict(manifest.node_ids),
        second_roles=dict(manifest.second_roles),
        last_ids=dict(manifest.last_ids),
        origin_utc_ns=manifest.origin_utc_ns,
        healed_ns=manifest.healed_ns,
        end_ns=manifest.end_ns,
        stuck_isr_limit_ns=limit_ns,
        metadata_settle_ns=settle_ns,
        metadata_age_max_ns=age_max_ns,
        acks=manifest.promises.acks,
        leases=manifest.promises.leases,
        bounds=manifest.required_bounds,
        keys=manifest.keys,
        recorded=tuple(manifest.recorded),
        clocks_drift=not (manifest.clock_watched or manifest.cluster.startswith(_VIRTUAL)),
        skews=tuple(
            skew
            for skew in manifest.clock_skews
            if skew.node == EVERY_NODE or _roles_of(skew.node, manifest.second_roles) != (BROKER,)
        ),
    )


def _roles_of(node: str, second: Mapping[str, str]) -> tuple[str, ...]:
    return (second[node], role_of(node)) if node in second else (role_of(node),)


def _settled_ns(promises: Promises) -> tuple[int, int] | None:
    """Return (settling time of metadata reads, their greatest age then), if promised."""
    if promises.metadata_settled_age_max_ms is None:
        return None
    bounds_ms = (promises.metadata_settle_ms, promises.metadata_settled_age_max_ms)
    settle_ns, age_max_ns = (int(bound_ms * _NS_A_MILLISECOND) for bound_ms in bounds_ms)
    return settle_ns, age_max_ns
