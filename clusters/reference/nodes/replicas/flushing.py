"""log.flush.interval.messages: a log is made durable whenever this many records came."""

from clusters.node_port.effects import SYNC, Effects
from clusters.reference.nodes.replicas.log import PartitionLog

__all__ = ["flush"]


def flush(log: PartitionLog, count: int, every: int, effects: Effects) -> None:
    """Count the appended records, and sync if it is time; no client waits for durability."""
    log.unsynced += count
    if log.unsynced >= every:
        log.unsynced = 0
        effects.append((SYNC, (log.key,), ("replicas", log.key)))
