"""The disks of a simulated cluster, as the tables that the witness writes.

A simulated disk holds values, so there is nothing to decode and nothing that could be damaged.
Times are those at which a record was first appended anywhere (`AppendTimes`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter, is_
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clusters.kafka_port import Role
from clusters.node_port.storage import (
    HIGH_WATERMARKS,
    Batch,
    PartitionKey,
)
from clusters.port import NodeName
from clusters.reference.codec.identifiers import text_of
from clusters.reference.simulated.append_times import AppendTimes
from clusters.reference.simulated.kept_log import KeptLogs
from clusters.simulation.disk import Disk
from history.cluster_schema import REPLICA_RECORDS, REPLICAS
from history.schema import RECORD_BUCKET_COUNT
from history.table_file import TableFile
from history.writer import bucket_of


def write_simulated_witness(
    disks: Mapping[NodeName, Disk],
    *,
    kept: KeptLogs,
    topics: Collection[str],
    times: AppendTimes,
    raw: Path,
) -> tuple[int, int]:
    """Write metadata_log, replicas and replica_records into a raw directory; how many records.

    (metadata records, records in replicas.) `kept`: it has followed these disks.
    """
    metadata_count = 0
    with TableFile(raw / "metadata_log.parquet", "metadata_log") as file:
        for node in sorted(disks):
            for table in kept.tables(node):
                metadata_count += table.num_rows
                file.add(table)
    kept.remove()
    return metadata_count, write_simulated_replicas(disks, topics=topics, times=times, raw=raw)


def write_simulated_replicas(
    disks: Mapping[NodeName, Disk], *, topics: Collection[str], times: AppendTimes, raw: Path
) -> int:
    """Write replicas and replica_records of the brokers' disks; return how many records."""
    replicas = [
        (f"{topic}-{log[1]}", node, log, disk)
        for node, disk in disks.items()
        if node.startswith(Role.BROKER)
        for log, topic in disk.topics.items()
        if topic in topics
    ]
    replicas.sort(key=lambda replica: replica[:2])
    with TableFile(raw / "replicas.parquet", "replicas") as file:
        rows = [_replica_row(*replica) for replica in replicas]
        file.add(pa.Table.from_pylist(rows, schema=REPLICAS))
    return _write_records(replicas, times, raw / "replica_records")


def _replica_row(key: str, node: NodeName, log: PartitionKey, disk: Disk) -> dict[str, Any]:
    batches: Sequence[Batch] = disk.batches(log)
    checkpoint = dict(disk.files.get(HIGH_WATERMARKS, ()))
    epochs = [
        {"leader_epoch": epoch, "start_offset": next(several).base_offset}
        for epoch, several in groupby(batches, key=attrgetter("leader_epoch"))
    ]
    return {
        "node": node,
        "key": key,
        "topic_id": text_of(log[0]),
        "log_start_offset": disk.start_of(log),
        "log_end_offset": batches[-1].end_offset if batches else 0,
        "high_watermark": checkpoint.get(log),
        "leader_epochs": epochs,
        "record_count": sum(map(attrgetter("count"), batches)),
        "damage": None,
    }


def _write_records(
    replicas: Sequence[tuple[str, NodeName, PartitionKey, Disk]], times: AppendTimes, path: Path
) -> int:
    path.mkdir()
    count = 0
    for bucket in range(RECORD_BUCKET_COUNT):
        with TableFile(path / f"bucket-{bucket:02}.parquet", "replica_records") as file:
            mine = [replica for replica in replicas if bucket_of(replica[0]) == bucket]
            for table in _record_tables(mine, times):
                count += table.num_rows
                file.add(table)
    return count


def _record_tables(
    replicas: Sequence[tuple[str, NodeName, PartitionKey, Disk]], times: AppendTimes
) -> Iterator[pa.Table]:
    """The records of each. Replicas of a key mostly hold the very same batches, looked at once."""
    known: Sequence[Batch] = ()
    columns = _record_columns(known, times)
    for key, node, log, disk in replicas:
        batches = disk.batches(log)
        if len(batches) != len(known) or not all(map(is_, batches, known)):
            known, columns = batches, _record_columns(batches, times)
        total = len(columns["offset"])
        whose = {"key": pa.repeat(key, total), "node": pa.repeat(str(node), total)}
        arrays = [(whose | columns)[field.name].cast(field.type) for field in REPLICA_RECORDS]
        yield pa.Table.from_arrays(arrays, schema=REPLICA_RECORDS)


def _record_columns(batches: Sequence[Batch], times: AppendTimes) -> dict[str, pa.Array]:
    """Return all columns of these batches' records but whose they are."""
    counts = np.array([batch.count for batch in batches], np.int64)
    total = int(counts.sum())

    def each(numbers: Iterable[int]) -> NDArray[np.int64]:
        """A number of each batch, for each of its records."""
        return np.repeat(np.fromiter(numbers, np.int64, len(batches)), counts)

    within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    made_ms = [times.stamp_ms(getattr(batch.payload, "made_ns", 0)) for batch in batches]
    values = pa.array(
        np.fromiter(chain.from_iterable(batch.payload for batch in batches), np.int64, total)
    )
    return {
        "offset": pa.array(each(batch.base_offset for batch in batches) + within),
        "leader_epoch": pa.array(each(batch.leader_epoch for batch in batches)),
        "timestamp_ms": pa.array(each(made_ms)),
        "control": pa.repeat(False, total),  # a value, not an option
        "committed": pa.nulls(total, pa.bool_()),
        "transactional": pa.repeat(False, total),
        "producer_id": pa.array(each(batch.producer_id for batch in batches)),
        "producer_epoch": pa.array(each(batch.producer_epoch for batch in batches)),
        "value": values,
        "digest": values,
    }
