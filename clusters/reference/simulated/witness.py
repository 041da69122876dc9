"""The witness of simulated clusters: their disks as files, read as those of processes are."""

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.codec.record_definitions import definitions
from fencepost.clusters.reference.simulated.append_times import AppendTimes
from fencepost.clusters.reference.simulated.disk_files import write_disks
from fencepost.clusters.simulation.disk import Disk
from fencepost.clusters.witness.witness import WitnessReport, write_replicas, write_witness


def write_simulated_witness(
    disks: Mapping[NodeName, Disk],
    *,
    voters: tuple[int, ...],
    kept: Path,
    topics: Collection[str],
    times: AppendTimes,
    raw: Path,
) -> WitnessReport:
    """Write metadata_log, replicas and replica_records into a raw directory.

    `kept`: the directory with what was kept of each node's metadata log, which goes.
    """
    directory = raw / "disks"
    try:
        data = write_disks(disks, directory, voters=voters, topics=topics, times=times)
        report = write_witness(
            data,
            topics=topics,
            definitions=definitions(),
            raw=raw,
            kept={node: kept / node for node in data if (kept / node).exists()},
        )
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.rmtree(kept, ignore_errors=True)
    return report


def write_simulated_replicas(
    disks: Mapping[NodeName, Disk], *, topics: Collection[str], times: AppendTimes, raw: Path
) -> WitnessReport:
    """Write replicas and replica_records alone, of brokers without a metadata log."""
    directory = raw / "disks"
    try:
        data = write_disks(disks, directory, voters=(), topics=topics, times=times)
        report = write_replicas(data, topics=topics, raw=raw)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return report
