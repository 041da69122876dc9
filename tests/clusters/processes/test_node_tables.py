"""What the harness records of its nodes beside what they recorded themselves."""

from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fencepost.clusters.processes.node_tables import findings_in, write_log_findings, write_settings
from fencepost.history.clock import Clock
from fencepost.history.cluster_tables import write_cluster_tables

STAMP = "2026-11-21T15:21:09.971"
FATAL = f"{STAMP} [raft-io] ERROR o.a.k.server.fault - Encountered fatal fault: Unexpected error"


def found(tmp_path: Path, text: str) -> list[tuple[int, str]]:
    log = tmp_path / "server.log"
    log.write_text(text)
    return [(one.line, one.finding) for one in findings_in(log)]


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        (FATAL, "fatal-fault"),
        (FATAL.replace("fatal fault", "metadata publishing fault"), "fatal-fault"),
        (f"{STAMP} WARN DataTree - Message:Digests are not matching. Value:85", "fatal-fault"),
        (f"{STAMP} [main] ERROR q.QuorumPeer - Unable to load database on disk", "unreadable-disk"),
        ("java.lang.OutOfMemoryError: Java heap space", "out-of-memory"),
        ("Terminating due to java.lang.OutOfMemoryError: Metaspace", "out-of-memory"),
        ("# A fatal error has been detected by the Java Runtime Environment:", "jvm-crash"),
    ],
)
def test_what_no_healthy_node_writes_is_found_with_its_line(
    tmp_path: Path, line: str, finding: str
) -> None:
    assert found(tmp_path, f"{STAMP} [main] INFO a - b\n{line}\n") == [(2, finding)]


def differs(zxid: int, *, last: bool = False) -> str:
    """A line about a digest: of the first transaction that differs, or of the last of several."""
    value = f" Last value:{zxid}" if last else f" Value:{zxid}"
    return f"{STAMP} [q] WARN o.a.z.s.DataTree - Message: Digests are not matching.{value}"


RECEIVES = f"{STAMP} [q] INFO q.Learner - Getting a snapshot from leader 0x200000212"
RECEIVED = f"{STAMP} [q] INFO p.FileTxnSnapLog - Snapshotting: 0x200000221 to d/snapshot.200000221"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([RECEIVES, differs(0x200000215), RECEIVED], []),
        ([RECEIVES, differs(0x200000215), RECEIVED, differs(0x200000221, last=True)], []),
        ([RECEIVES, differs(0x200000215), RECEIVED, differs(0x200000222, last=True)], [4]),
        ([RECEIVES, RECEIVED, differs(0x200000222)], [3]),
        ([RECEIVED, RECEIVES, differs(0x200000300), differs(0x200000301)], []),
    ],
)
def test_digests_of_transactions_that_a_snapshot_held_already_say_nothing(
    tmp_path: Path, lines: list[str], expected: list[int]
) -> None:
    assert [line for line, _ in found(tmp_path, "\n".join(lines))] == expected


def test_a_fault_that_is_not_fatal_is_no_finding(tmp_path: Path) -> None:
    near = FATAL.replace("fatal fault", "non-fatal fault")
    assert found(tmp_path, f"{near}\n{STAMP} [main] ERROR a - FATAL, faulty, fatal\n") == []
    assert list(findings_in(tmp_path / "absent.log")) == []


def test_a_start_that_failed_is_told_with_its_exceptions(tmp_path: Path) -> None:
    trace = "java.io.IOException: a\n\tat b.c(D.java:1)\nCaused by: java.io.EOFException: null\n"
    load = f"{STAMP} [main] ERROR q.QuorumPeer - Unable to load database on disk"
    log = tmp_path / "server.log"
    log.write_text(f"{load}\n{trace}\t... 4 common\n{STAMP} [main] INFO a - b\n{load}\n")
    first, last = findings_in(log)
    told = " | java.io.IOException: a | Caused by: java.io.EOFException: null"
    assert (first.line, first.finding, first.text) == (1, "unreadable-disk", load + told)
    assert (last.line, last.text) == (7, load)


def test_a_log_that_repeats_itself_is_cut(tmp_path: Path) -> None:
    assert len(found(tmp_path, f"{FATAL}\n" * 1500)) == 1000


def test_the_tables_are_sealed_as_they_were_written(tmp_path: Path) -> None:
    raw, history, log = tmp_path / "raw", tmp_path / "history", tmp_path / "server.log"
    raw.mkdir()
    history.mkdir()
    log.write_text(f"{FATAL}\nno stamp: java.lang.OutOfMemoryError")
    write_settings(raw, {"broker-1": {"node.id": "1", "log.dirs": "d"}})
    clock = Clock.start()
    write_log_findings(raw, {"broker-1": [log]}, clock=clock)
    write_cluster_tables(raw, history)
    assert pq.read_table(history / "node_settings.parquet").to_pylist() == [
        {"node": "broker-1", "name": "log.dirs", "value": "d", "since_ns": None},
        {"node": "broker-1", "name": "node.id", "value": "1", "since_ns": None},
    ]
    fatal, memory = pq.read_table(history / "log_findings.parquet").to_pylist()
    assert (fatal["file"], fatal["line"], fatal["text"]) == ("server.log", 1, FATAL)
    logged_s = datetime.fromisoformat(STAMP).timestamp() - datetime.now().timestamp()  # noqa: DTZ005 -- as nodes log
    assert abs(fatal["time_ns"] / 1e9 - logged_s) < 60  # the run began just now
    assert memory["time_ns"] is None


def test_a_node_that_ran_and_logged_nothing_is_told(tmp_path: Path) -> None:
    raw, history = tmp_path / "raw", tmp_path / "history"
    empty, told = tmp_path / "empty.log", tmp_path / "told.log"
    for directory in (raw, history):
        directory.mkdir()
    empty.touch()
    told.write_text("all is well")
    logs = {"server-1": [empty], "server-2": [empty, told], "server-3": [tmp_path / "never.log"]}
    write_log_findings(raw, logs, clock=Clock.start())
    write_cluster_tables(raw, history)
    [row] = pq.read_table(history / "log_findings.parquet").to_pylist()
    assert (row["node"], row["finding"], row["line"]) == ("server-1", "silent", 0)
