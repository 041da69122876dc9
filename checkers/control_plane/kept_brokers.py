"""Brokers that the active controller on ZooKeeper had for alive as it wrote a partition's state.

Such a controller writes down no reasons. What it knows of a broker it learns from ZooKeeper, whose
transactions have one order, and from requests, which are on the tape. So a broker is alive to it,
whatever its own queue of events still holds, if

- it had told the broker so under the registration in force: a request of this controller epoch that
  names the registration's broker epoch had been sent before the write. A controller that finds a
  broker gone, or back under another registration, deals with that before it sends such a request;
- the registration ends at a higher zxid than the write: the controller cannot know of its end;
- no ControlledShutdown of the broker had reached a controller. One that is the controller itself
  sends it over no link, so it is never taken for alive.

Nothing is said where brokers send MetadataHeartbeats, whose silence ends an office as well, nor of
a partition of which a broker answered that its disk failed, nor at all once a broker has announced
that one of its log directories did (KIP-112).

Source: `KafkaController.processBrokerChange`, `onBrokerFailure` and `doControlledShutdown` of
3.9.2; KIP-380.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.metadata.metadata_heartbeats import heartbeats_of
from fencepost.checkers.metadata.partition_states import PartitionHistory, PartitionVersion
from fencepost.checkers.metadata.sessions import term_at
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.sources import Source

_TELLING: Final = ("UpdateMetadata", "LeaderAndIsr")
_SHUTDOWN: Final = "ControlledShutdown"
_FAILED: Final = "KAFKA_STORAGE_ERROR"
_LOG_DIRS: Final = "/log_dir_event_notification/"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBrokers:
    """The brokers that a controller had for alive, by the tape."""

    seen: MetadataView
    told_ns: Mapping[tuple[int, int], int]
    """When a request of a controller epoch that names a broker epoch first was on its way."""
    leaving_ns: Mapping[int, int]
    """When the first ControlledShutdown of a broker epoch reached the proxy; -1 for those whose
    request names none."""
    failed: frozenset[tuple[str | None, str | None, int | None]]
    """(topic, topic id, partition) of which a broker answered that its disk failed."""
    log_dir_failed: bool
    beating: bool
    """Brokers send MetadataHeartbeats."""

    def judges(self, history: PartitionHistory, version: PartitionVersion) -> bool:
        """Return whether a version of this partition can be held against anyone."""
        decided_ms = history.decided_until_ms
        if (
            self.beating
            or self.log_dir_failed
            or (decided_ms is not None and version.timestamp_ms >= decided_ms)
        ):
            return False
        topics = {(history.topic, None), (None, history.topic_id)}
        topics.add((history.topic, history.topic_id))
        return not any((*one, history.partition) in self.failed for one in topics)

    def has(self, broker_id: int, version: PartitionVersion) -> bool:
        """Return whether the controller that wrote a version had this broker for alive."""
        seen = self.seen
        term = term_at(seen.terms, version.metadata_offset)
        registered = seen.broker_before(broker_id, version.metadata_offset)
        if term is None or term.controller_epoch != version.controller_epoch:
            return False
        if registered is None or not registered.eligible:
            return False
        if seen.facts.node_ids.get(term.node, broker_id) == broker_id:
            return False
        broker_epoch = registered.broker_epoch
        written_ns = seen.facts.earliest_ns(version.timestamp_ms)
        told_ns = self.told_ns.get((term.controller_epoch, broker_epoch), OPEN_NS)
        leaving_ns = min(self.leaving_ns.get(one, OPEN_NS) for one in (broker_epoch, -1))
        may_leave = leaving_ns <= seen.facts.latest_ns(version.timestamp_ms)
        return told_ns <= written_ns and not may_leave


def kept_brokers(wire: Source, seen: MetadataView) -> KeptBrokers:
    """Return them, out of the tape."""
    told_ns: dict[tuple[int, int], int] = {}
    leaving_ns: dict[int, int] = {}
    failed: set[tuple[str | None, str | None, int | None]] = set()
    log_dir_failed = False
    columns = ("api", "direction", "time_ns", "controller_epoch", "broker_epoch", "error", "path")
    for batch in wire((*columns, "topic", "topic_id", "partition")):
        known = batch.filter(pc.is_in(batch.column("api"), pa.array((*_TELLING, _SHUTDOWN))))
        for row in known.to_pylist():
            epoch = row["broker_epoch"]
            if row["direction"] != "request":
                if row["error"] == _FAILED:
                    failed.add((row["topic"], row["topic_id"], row["partition"]))
            elif row["api"] == _SHUTDOWN:
                place = -1 if epoch is None else epoch
                leaving_ns[place] = min(row["time_ns"], leaving_ns.get(place, OPEN_NS))
            elif epoch is not None and row["controller_epoch"] is not None:
                of = (row["controller_epoch"], epoch)
                told_ns[of] = min(row["time_ns"], told_ns.get(of, OPEN_NS))
        paths = pc.fill_null(pc.starts_with(batch.column("path"), _LOG_DIRS), False)
        log_dir_failed = log_dir_failed or pc.any(paths).as_py() is True
    return KeptBrokers(
        seen=seen,
        told_ns=told_ns,
        leaving_ns=leaving_ns,
        failed=frozenset(failed),
        log_dir_failed=log_dir_failed,
        beating=bool(heartbeats_of(wire)),
    )
