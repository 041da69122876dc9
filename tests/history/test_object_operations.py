"""Operations on znodes and other objects, from the journals of clients to the sealed table."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from manifests import MANIFEST
from sealed_runs import sealed_files, sealed_table

from fencepost.history.clock import Clock
from fencepost.history.journal import EventJournal
from fencepost.history.manifest import RunState, read_manifest, write_manifest
from fencepost.history.models import OPEN_MODELS, Model
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import RECORD_BUCKET_COUNT
from fencepost.history.seal import seal

TABLE = "znode_operations"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return run_of(tmp_path, "znode")


def run_of(tmp_path: Path, model: str) -> RunDirectory:
    run = RunDirectory(tmp_path / "run")
    run.raw.mkdir(parents=True)
    manifest = replace(
        MANIFEST, state=RunState.RUNNING, origin_ns=Clock.start().origin_ns, model=model
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


@pytest.mark.parametrize("model", [one for one in OPEN_MODELS if one is not Model.LIST_APPEND])
def test_the_operations_of_every_model_are_sealed_alike(model: Model, tmp_path: Path) -> None:
    run, table = run_of(tmp_path, model), "model_operations"
    with EventJournal(run.raw, table, writer="mine-0") as journal:
        row = {"process": 7, "key": "a", "f": "read", "call_ns": 10}
        ended = journal.begin(row)
        journal.begin(row | {"call_ns": 20})
        journal.end(ended, {"outcome": "ok", "return_ns": 15, "value": 3})
    seal(run)
    rows = sealed_table(run, table).sort_by("index").to_pylist()
    assert [(row["index"], row["outcome"], row["value"]) for row in rows] == [
        (0, "ok", 3),
        (1, "info", None),
    ]


def test_a_transaction_over_lists_has_a_row_a_step(tmp_path: Path) -> None:
    run, table = run_of(tmp_path, Model.LIST_APPEND), "micro_operations"
    with EventJournal(run.raw, table, writer="mine-0") as journal:
        append, read = {"key": "a", "f": "append", "value": 5}, {"key": "b", "f": "read"}
        row = {"process": 7, "call_ns": 10, "steps": [append, read]}
        ended = journal.begin(row)
        journal.begin(row | {"call_ns": 20})
        told = [append, read | {"values": [1, 2]}]
        journal.end(ended, {"outcome": "ok", "return_ns": 15, "steps": told})
    seal(run)
    rows = sealed_table(run, table).sort_by(
        [("transaction", "ascending"), ("position", "ascending")]
    )
    assert [
        (row["transaction"], row["position"], row["key"], row["outcome"], row["values"])
        for row in rows.to_pylist()
    ] == [
        (0, 0, "a", "ok", None),
        (0, 1, "b", "ok", [1, 2]),
        (1, 0, "a", "info", None),
        (1, 1, "b", "info", None),
    ]
