"""A kind of operation that never succeeds is a shortfall, where the run gave it the chance."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from manifests import MANIFEST as SMALL

from fencepost.checkers.case_counts import with_case_count
from fencepost.checkers.catalogue import asked
from fencepost.checkers.grounds.operation_kinds import operation_kinds, operation_kinds_in
from fencepost.checkers.grounds.topics_alive import topics_alive, topics_alive_in
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.history.manifest import Manifest, Promises, read_manifest, write_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import TABLES

S = 1_000_000_000
MANIFEST = replace(
    SMALL,
    recorded=("metadata_writes", "partition_writes", "transactions"),
    asked_operations={"create-topic": 20.0, "delete-topic": 20.0, "cancel-reassignment": None},
    promises=Promises(idempotent=True, acks="all", consume="assign", topics_max=2),
    end_ns=100 * S,
)
PLAY = replace(MANIFEST, asked_faults=("hold",))
DRAWN = replace(PLAY, drawn=True)
REFUSED = ("info", "NOT_CONTROLLER")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    found = RunDirectory(tmp_path / "run")
    found.history.mkdir(parents=True)
    return found


def table(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A row a mapping; whatever a row has to have and does not say is made up."""
    made_up = {pa.string(): "-", pa.int64(): 0, pa.int32(): 0, pa.int16(): 0}
    schema = TABLES[name]
    filled = [
        {one.name: made_up.get(one.type, []) for one in schema if not one.nullable} | row
        for row in rows
    ]
    return pa.Table.from_pylist(filled, schema=schema)


def calls(f: str, count: int, *answer: str, from_s: float = 0, every_s: float = 1) -> list[Any]:
    outcome, *error = answer
    return [
        {
            "f": f,
            "call_ns": int((from_s + every_s * number) * S),
            "outcome": outcome,
            "error": error[0] if error else None,
        }
        for number in range(count)
    ]


def fault(begin_s: float, end_s: float | None) -> dict[str, Any]:
    end_ns = None if end_s is None else int(end_s * S)
    return {"fault": "kill", "kind": "kill", "begin_ns": int(begin_s * S), "end_ns": end_ns}


def judged(
    run: RunDirectory,
    writes: Sequence[Any],
    *faults: dict[str, Any],
    moves: Sequence[Any] = (),
    ends: Sequence[Any] = (),
    manifest: Manifest = MANIFEST,
) -> CheckResult:
    transactions = [{"intent": one["f"], "end_call_ns": one["call_ns"], **one} for one in ends]
    transactions = [
        {k: v for k, v in one.items() if k not in ("f", "call_ns")} for one in transactions
    ]
    pq.write_table(table("metadata_writes", writes), run.table_path("metadata_writes"))
    pq.write_table(table("partition_writes", moves), run.table_path("partition_writes"))
    pq.write_table(table("transactions", transactions), run.table_path("transactions"))
    return operation_kinds(run, manifest, table("faults", faults))


def test_every_kind_succeeded(run: RunDirectory) -> None:
    writes = calls("create-topic", 40, "ok") + calls("delete-topic", 1, "ok", from_s=9)
    found = judged(run, writes)
    assert (found.validity, found.case_count) == (Validity.VALID, 2)
    verdict = Verdict.of([found], run_id="s/1")
    create, delete, cancel = operation_kinds_in(verdict)
    assert (create.kind, create.ok_count, create.called_count) == ("create-topic", 40, 40)
    assert (delete.ok_count, cancel.called_count) == (1, 0)


def test_a_kind_of_which_none_succeeded_is_named_with_what_it_was_answered(
    run: RunDirectory,
) -> None:
    writes = calls("create-topic", 40, "ok") + calls("delete-topic", 14, *REFUSED)
    found = judged(run, writes)
    assert found.validity is Validity.UNKNOWN
    assert found.reason == "none of 14 delete-topic succeeded (NOT_CONTROLLER 14)"


def test_a_kind_that_was_never_called_is_missed_when_there_was_time_for_it(
    run: RunDirectory,
) -> None:
    found = judged(run, calls("create-topic", 40, "ok"))
    assert found.validity is Validity.UNKNOWN
    assert found.reason.startswith("no delete-topic was ever called, though nothing was broken for")
    assert judged(run, calls("create-topic", 20, "ok")).validity is Validity.VALID


def test_a_run_in_which_something_was_always_broken_owes_little(run: RunDirectory) -> None:
    writes = calls("create-topic", 40, "ok") + calls("delete-topic", 14, *REFUSED)
    broken = [fault(4 * number, 4 * number + 3) for number in range(10)]
    assert judged(run, writes, *broken).validity is Validity.VALID
    assert judged(run, writes, fault(0, None)).validity is Validity.VALID
    often = writes + calls("delete-topic", 16, *REFUSED, from_s=14)
    assert judged(run, often, fault(0, None), manifest=DRAWN).validity is Validity.UNKNOWN
    assert judged(run, often, fault(0, None), manifest=PLAY).validity is Validity.VALID
    settled = writes + calls("delete-topic", 10, *REFUSED, from_s=45)
    assert judged(run, settled, fault(0, 40), manifest=PLAY).validity is Validity.UNKNOWN


def test_a_call_that_finds_nothing_to_call_off_is_no_refusal(run: RunDirectory) -> None:
    manifest = replace(MANIFEST, asked_operations={"cancel-reassignment": None})
    nothing = calls("cancel-reassignment", 36, "info", "NO_REASSIGNMENT_IN_PROGRESS", from_s=9)
    refused = calls("cancel-reassignment", 36, *REFUSED, from_s=9)
    assert judged(run, [], moves=nothing, manifest=manifest).validity is Validity.VALID
    assert judged(run, [], moves=refused, manifest=manifest).validity is Validity.UNKNOWN
    again = [*refused, *calls("cancel-reassignment", 1, "ok", from_s=90)]
    assert judged(run, [], moves=again, manifest=manifest).validity is Validity.VALID


def test_transactions_are_counted_by_the_end_that_was_intended(run: RunDirectory) -> None:
    manifest = replace(MANIFEST, asked_operations={"commit": 20.0, "abort": 20.0})
    commits = calls("commit", 40, "ok")
    found = judged(run, [], ends=commits + calls("abort", 5, "info"), manifest=manifest)
    assert found.reason == "none of 5 abort succeeded (no answer)"
    found = judged(run, [], ends=commits + calls("abort", 5, "ok"), manifest=manifest)
    assert found.validity is Validity.VALID


def test_a_run_cut_short_and_one_that_did_not_say_what_it_was_to_do_owe_nothing(
    run: RunDirectory,
) -> None:
    writes = calls("create-topic", 40, *REFUSED)
    for manifest in (replace(MANIFEST, end_ns=None), replace(MANIFEST, asked_operations={})):
        found = with_case_count(judged(run, writes, manifest=manifest), manifest.promises)
        assert found.validity is Validity.NOT_JUDGED


def test_what_was_to_be_done_is_read_from_the_manifest_as_it_was_written(tmp_path: Path) -> None:
    write_manifest(tmp_path / "manifest.json", MANIFEST)
    assert read_manifest(tmp_path / "manifest.json") == MANIFEST


def test_topics_are_counted_at_the_end_and_at_most(run: RunDirectory) -> None:
    manifest = replace(MANIFEST, recorded=("metadata_log", "metadata_writes"))
    assert "topics-alive" in [entry.name for entry in asked(manifest.tables)]
    writes = [
        {"f": "create-topic", "topic": topic, "outcome": "ok"} for topic in ("a", "b", "c", "d")
    ]
    pq.write_table(table("metadata_writes", writes), run.table_path("metadata_writes"))
    changes = ["+a", "+t", "+b", "+c", "-b", "-a", "+d"]
    log = [
        {
            "node": node,
            "metadata_offset": offset,
            "type": "TopicRecord" if change[0] == "+" else "RemoveTopicRecord",
            "topic": change[1:],
            "snapshot": False,
            "control": False,
        }
        for node, length in (("broker-1", 5), ("controller-1", 7), ("broker-2", 3))
        for offset, change in enumerate(changes[:length])
    ]
    pq.write_table(table("metadata_log", log), run.table_path("metadata_log"))
    found = with_case_count(topics_alive(run, manifest), manifest.promises)
    assert found.validity is Validity.FIGURE
    topics = topics_alive_in(Verdict.of([found], run_id="s/1"))
    assert topics is not None
    assert (topics.end_count, topics.max_count, topics.promised) == (2, 3, 2)
