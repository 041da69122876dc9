"""The tables of the cluster, as the seal makes them of journals."""

from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq

from fencepost.history.cluster_tables import write_cluster_tables
from fencepost.history.journal import RowJournal, TapeJournal

HEARTBEAT = {
    "connection": 1,
    "source": "broker-1",
    "target": "controller-1",
    "direction": "request",
    "time_ns": 5,
    "action": "forwarded",
    "api": "BrokerHeartbeat",
    "api_key": 63,
    "api_version": 1,
    "correlation_id": 7,
    "size_bytes": 60,
}


def test_heartbeats_tell_metadata_offsets_and_an_unreadable_one_tells_none(
    tmp_path: Path,
) -> None:
    raw, history = tmp_path / "raw", tmp_path / "history"
    raw.mkdir()
    history.mkdir()
    with closing(TapeJournal(raw)) as tape:
        tape.frame({**HEARTBEAT, "api_version": 9, "detail": "not decoded: version 9"})
        tape.frame({**HEARTBEAT, "fetch_offset": 40})
    write_cluster_tables(raw, history)
    assert pq.read_table(history / "wire.parquet").num_rows == 2
    assert pq.read_table(history / "metadata_offsets.parquet").to_pylist() == [
        {"time_ns": 5, "node": "broker-1", "metadata_offset": 40, "source": "heartbeat"}
    ]


WINDOW = {
    "index": 0,
    "window": "mix-2",
    "kind": "AlterPartition request",
    "form": "window",
    "key": "t-0",
    "begin_ns": 5,
    "struck": [],
}


def test_of_a_window_the_last_that_was_known_counts(tmp_path: Path) -> None:
    raw, history = tmp_path / "raw", tmp_path / "history"
    raw.mkdir()
    history.mkdir()
    with RowJournal(raw, "windows") as journal:
        journal.add(WINDOW)
        journal.add({**WINDOW, "index": 1, "window": "mix-4", "begin_ns": 8})
        journal.add({**WINDOW, "held_ns": 9, "struck": ["kill", "wipe"], "strike_ns": 11})
    write_cluster_tables(raw, history)
    first, second = pq.read_table(history / "windows.parquet").to_pylist()
    assert (first["window"], first["held_ns"], first["struck"]) == ("mix-2", 9, ["kill", "wipe"])
    assert (first["strike_ns"], first["end_ns"]) == (11, None)
    assert (second["index"], second["held_ns"], second["struck"]) == (1, None, [])
