"""The witness: what lies on the disks of a cluster's nodes, as raw tables of a run.

It reads and never writes there, needs no process of Kafka's, and takes disks as they are: of a
stopped cluster, of one whose nodes were killed, of a running one (whose last batch may be half
written), or with nodes wiped. Whatever cannot be read is a damage in the report; only a raw
directory that cannot be written is an error.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from clusters.kafka_port import Role, role_of
from clusters.port import NodeName
from clusters.protocol.metadata_records import UNKNOWN, Definitions
from clusters.witness.metadata_log import read_metadata_log
from clusters.witness.replicas import Replica, find_replicas, read_replica
from history.cluster_schema import REPLICAS
from history.failure import HarnessError
from history.schema import RECORD_BUCKET_COUNT
from history.table_file import whole_table_file
from history.writer import bucket_of

__all__ = ["Damage", "WitnessReport", "write_replicas", "write_witness"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Something on a node's disk that is not as it should be."""

    node: NodeName
    subject: str
    """"metadata log", "replicas", or the key of a replica."""
    what: str

    def __str__(self) -> str:
        return f"{self.node}: {self.subject}: {self.what}"


@dataclass(slots=True, kw_only=True)
class WitnessReport:
    """The number of things read, and those that could not be read."""

    metadata_record_counts: dict[NodeName, int] = field(default_factory=dict)
    """The counts of metadata records by node, those of a snapshot included."""
    unknown_type_counts: Counter[int] = field(default_factory=Counter)
    """Records that could not be decoded, by type; -1: not even that could be read."""
    replica_count: int = 0
    replica_record_count: int = 0
    damages: list[Damage] = field(default_factory=list)

    @property
    def damaged(self) -> tuple[str, ...]:
        """The things that could not be read, one sentence for each item."""
        unknown = sum(self.unknown_type_counts.values())
        words = (f"{unknown} metadata records of unknown types",) if unknown else ()
        return (*map(str, self.damages), *words)

    @property
    def summary(self) -> str:
        """The amount that was read, in words."""
        records = f"{self.replica_record_count:,} records in {self.replica_count} replicas"
        if not self.metadata_record_counts:
            return f"the disks hold {records}"
        metadata = sum(self.metadata_record_counts.values())
        return f"the disks hold {metadata:,} metadata records and {records}"


def write_witness(
    node_data: Mapping[NodeName, Path],
    *,
    topics: Collection[str],
    definitions: Definitions,
    raw: Path,
) -> WitnessReport:
    """Write the tables metadata_log, replicas and replica_records into a run's raw directory.

    `node_data` has each node's data directory, `topics` are those whose replicas are read. Raises
    HarnessError if `raw` cannot be written.
    """
    report = WitnessReport()
    try:
        raw.mkdir(parents=True, exist_ok=True)
        _write_metadata_log(node_data, definitions=definitions, raw=raw, report=report)
        _write_replicas(node_data, topics=topics, raw=raw, report=report)
    except OSError as error:
        raise HarnessError(f"cannot write the witness's tables in {raw}: {error}") from error
    return report


def write_replicas(
    node_data: Mapping[NodeName, Path], *, topics: Collection[str], raw: Path
) -> WitnessReport:
    """Write the tables replicas and replica_records alone, as `write_witness` does."""
    report = WitnessReport()
    try:
        raw.mkdir(parents=True, exist_ok=True)
        _write_replicas(node_data, topics=topics, raw=raw, report=report)
    except OSError as error:
        raise HarnessError(f"cannot write the witness's tables in {raw}: {error}") from error
    return report


def _write_metadata_log(
    node_data: Mapping[NodeName, Path],
    *,
    definitions: Definitions,
    raw: Path,
    report: WitnessReport,
) -> None:
    with whole_table_file(raw / "metadata_log.parquet", "metadata_log") as file:
        for node, data in sorted(node_data.items()):
            count = 0
            for piece in read_metadata_log(node, data, definitions=definitions):
                file.add(piece.rows)
                count += piece.rows.num_rows
                unknown = piece.rows.filter(pc.equal(piece.rows["type"], UNKNOWN))
                report.unknown_type_counts.update(unknown["type_key"].to_pylist())
                _note(report, node, "metadata log", *piece.damages)
            report.metadata_record_counts[node] = count


def _write_replicas(
    node_data: Mapping[NodeName, Path],
    *,
    topics: Collection[str],
    raw: Path,
    report: WitnessReport,
) -> None:
    directory = raw / "replica_records"
    directory.mkdir(exist_ok=True)
    rows = []
    replicas = _all_replicas(node_data, topics, report)
    # All buckets, also those without a replica: an earlier look may have left something there.
    for bucket in range(RECORD_BUCKET_COUNT):
        with whole_table_file(directory / f"bucket-{bucket:02}.parquet", "replica_records") as file:
            for replica in (one for one in replicas if bucket_of(one.key) == bucket):
                state = read_replica(replica, write=file.add)
                rows.append(state.row)
                report.replica_count += 1
                report.replica_record_count += state.row["record_count"]
                _note(report, replica.node, replica.key, *state.damages)
    with whole_table_file(raw / "replicas.parquet", "replicas") as file:
        in_order = sorted(rows, key=lambda row: (row["key"], row["node"]))
        file.add(pa.Table.from_pylist(in_order, schema=REPLICAS))


def _all_replicas(
    node_data: Mapping[NodeName, Path], topics: Collection[str], report: WitnessReport
) -> list[Replica]:
    found: list[Replica] = []
    for node, data in node_data.items():
        if role_of(node) is Role.BROKER:
            there = find_replicas(node, data, topics=topics)
            found.extend(there.by_key.values())
            _note(report, node, "replicas", *there.damages)
    return sorted(found, key=lambda replica: (replica.key, replica.node))


def _note(report: WitnessReport, node: NodeName, subject: str, *whats: str) -> None:
    report.damages.extend(Damage(node=node, subject=subject, what=what) for what in whats)
