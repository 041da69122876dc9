"""Operations on znodes, from the journals of several clients to the sealed table."""

from pathlib import Path
from typing import Any

import pytest
from sealed_runs import sealed_files, sealed_table

from history.clock import Clock
from history.journal import EventJournal
from history.manifest import Manifest, Promises, RunState, read_manifest, write_manifest
from history.run_directory import RunDirectory
from history.schema import RECORD_BUCKET_COUNT
from history.seal import seal

TABLE = "znode_operations"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path / "run")
    run.raw.mkdir(parents=True)
    manifest = Manifest(
        run_id="znodes",
        state=RunState.RUNNING,
        scenario="znodes",
        title="Znodes",
        seed=1,
        started_at="2026-01-01T00:00:00+00:00",
        origin_ns=Clock.start().origin_ns,
        command="",
        fencepost_version="0",
        promises=Promises(idempotent=True, acks="all", consume="assign"),
        model="znode",
    )
    write_manifest(run.manifest_path, manifest)
    return run


def begun(call_ns: int, key: str, **more: Any) -> dict[str, Any]:
    return {
        "process": 7,
        "session": 1,
        "server": "h:1",
        "key": key,
        "f": "create",
        "call_ns": call_ns,
    } | more


def test_clients_are_merged_by_their_calls_and_what_is_open_is_info(run: RunDirectory) -> None:
    with (
        EventJournal(run.raw, TABLE, writer="register-0") as one,
        EventJournal(run.raw, TABLE, writer="register-1") as other,
    ):
        first = one.begin(begun(10, "/a", value=1))
        one.begin(begun(30, "/b", value=2))
        second = other.begin(begun(20, "/a", f="read"))
        other.end(second, {"outcome": "ok", "return_ns": 25})
        told = {"life": 5, "version": 0, "zxid": 5}
        one.end(first, {"outcome": "ok", "return_ns": 40, **told})
    seal(run)
    rows = sealed_table(run, TABLE).sort_by("index").to_pylist()
    assert [(row["index"], row["key"], row["outcome"]) for row in rows] == [
        (0, "/a", "ok"),
        (1, "/a", "ok"),
        (2, "/b", "info"),
    ]
    assert rows[0]["life"] == 5
    assert rows[2]["return_ns"] is None


def test_every_bucket_is_there_and_has_a_digest_even_if_nothing_was_recorded(
    run: RunDirectory,
) -> None:
    seal(run)
    assert len(sealed_files(run, TABLE)) == RECORD_BUCKET_COUNT
    digests = read_manifest(run.manifest_path).digests
    assert sum(name.startswith(f"history/{TABLE}/") for name in digests) == RECORD_BUCKET_COUNT


def test_a_run_of_objects_has_their_table_and_none_of_records(run: RunDirectory) -> None:
    assert read_manifest(run.manifest_path).tables == {TABLE}


def test_the_raw_journals_are_removed_once_they_are_sealed(run: RunDirectory) -> None:
    with EventJournal(run.raw, TABLE, writer="register-0") as journal:
        journal.begin(begun(10, "/a", value=1))
    seal(run)
    assert not run.raw.exists()
