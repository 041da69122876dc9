"""log.flush.interval.messages: a log is made durable each time so many records came."""

from clusters.node_port.effects import SYNC, Effects
from clusters.reference.nodes.replicas.log import PartitionLog

__all__ = ["flush"]


def flush(log: PartitionLog, count: int, every: int, effects: Effects) -> None:
    """`count` more records were appended; nobody waits until they are durable."""
    log.unsynced += count
    if log.unsynced >= every:
        log.unsynced = 0
        effects.append((SYNC, (log.key,), ("replicas", log.key)))
