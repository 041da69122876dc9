"""What groups are told of their committed offsets."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from histories import history
from hypothesis import given
from hypothesis import strategies as st
from manifests import MANIFEST
from metadata_logs import asked
from proving import assert_proof

from fencepost.checkers.anomaly import anomalies_of
from fencepost.checkers.check import check_run
from fencepost.checkers.facts import Facts
from fencepost.checkers.proof import Proof
from fencepost.checkers.runner.tasks import TaskSession
from fencepost.checkers.transactions.group_offsets import NAME, wrong_group_offsets
from fencepost.checkers.verdict import Validity
from fencepost.history.manifest import write_manifest
from fencepost.history.request_schema import GROUP_OFFSETS
from fencepost.history.run_directory import RunDirectory
from fencepost.history.seal import note_digests
from fencepost.history.writer import write_tables

Row = dict[str, Any]


def table(*rows: Row) -> pa.Table:
    ordered = sorted(rows, key=lambda row: row["call_ns"])
    numbered = [row | {"index": number} for number, row in enumerate(ordered)]
    return pa.Table.from_pylist(numbered, schema=GROUP_OFFSETS)


def sent(call_ns: int, return_ns: int | None, offset: int, outcome: str = "ok") -> Row:
    return {
        "process": 0,
        "f": "send-offsets",
        "group": "g",
        "call_ns": call_ns,
        "return_ns": return_ns,
        "outcome": outcome,
        "keys": ["t-0"],
        "offsets": [offset],
        "offsets_before": [0],
    }


def told(call_ns: int, return_ns: int, offset: int) -> Row:
    row = sent(call_ns, return_ns, offset)
    return row | {"f": "fetch-offsets", "offsets_before": None}


def wrong(*rows: Row) -> list[Proof]:
    judged = asked(wrong_group_offsets, {"group_offsets": table(*rows)}, Facts(node_ids={}))
    return [one.proof for _, found in judged for one in anomalies_of(found.table)]


def cases(*rows: Row) -> int:
    judged = asked(wrong_group_offsets, {"group_offsets": table(*rows)}, Facts(node_ids={}))
    return sum(found.case_count for _, found in judged)


OLD, NEW = sent(0, 10, 5), sent(20, 30, 9)


def test_an_answer_is_a_case_and_a_sending_is_none() -> None:
    assert cases(OLD, NEW, told(31, 40, 5)) == cases(OLD, NEW, told(31, 40, 9)) == 1
    assert cases(OLD, NEW, told(31, 40, 9) | {"outcome": "info"}) == 0
    assert cases(OLD, NEW) == cases() == 0


@pytest.mark.parametrize(
    ("rows", "rule", "facts"),
    [
        (
            [OLD, NEW, told(31, 40, 5)],
            "which row {sent_by} sent; row {latest_row} had committed {latest_offset} before",
            {"row": 2, "offset": 5, "sent_by": 0, "latest_row": 1, "latest_offset": 9},
        ),
        (
            [OLD, told(11, 12, -1)],
            "nothing is committed; row {latest_row} had committed",
            {"row": 1, "latest_row": 0, "latest_offset": 5},
        ),
        ([told(0, 1, 7)], "which no row had sent", {"row": 0, "offset": 7}),
        ([told(0, 1, 5), sent(2, 3, 5)], "which no row had sent", {"offset": 5}),
        (
            [sent(0, 10, 5, "fail"), told(11, 12, 5)],
            "which row {sent_by} sent and which was aborted",
            {"offset": 5, "sent_by": 0},
        ),
        # A crashed commit that was seen was committed.
        (
            [OLD, sent(20, None, 9, "info"), told(30, 31, 9), told(32, 33, 5)],
            "which row {sent_by} sent; row",
            {"offset": 5, "sent_by": 0, "latest_row": 1, "latest_offset": 9},
        ),
    ],
    ids=["went-back", "vanished", "strange", "early", "aborted", "seen-and-gone"],
)
def test_an_answer_that_cannot_be_is_found(
    rows: list[Row], rule: str, facts: dict[str, object]
) -> None:
    (proof,) = wrong(*rows)
    assert_proof(proof, rule, **facts)


@pytest.mark.parametrize(
    "rows",
    [
        [told(0, 1, -1), OLD, NEW, told(31, 40, 9)],
        # The question was open while the later one was committed.
        [OLD, NEW, told(29, 40, 5)],
        [OLD, NEW, told(29, 40, 9)],
        # Two at a time come in either order.
        [OLD, sent(5, 30, 9), told(31, 40, 5)],
        # A crashed commit may have been, or not, or take effect after everything.
        [OLD, sent(20, None, 9, "info"), told(30, 31, 5)],
        [OLD, sent(20, None, 9, "info"), told(30, 31, 9)],
        [sent(0, None, 5, "info"), NEW, told(31, 32, 9), told(33, 34, 5)],
        # An answer that two sendings may have written says of neither that it was.
        [sent(0, None, 5, "info"), sent(2, None, 5, "info"), told(9, 10, 5), told(11, 12, -1)],
        [sent(0, 10, 5, "fail"), told(11, 12, -1)],
        # What was asked without an answer says nothing.
        [OLD, told(11, 12, -1) | {"outcome": "fail", "offsets": []}],
    ],
)
def test_an_answer_that_may_be_is_none(rows: list[Row]) -> None:
    assert not wrong(*rows)


@given(st.data())
def test_a_register_is_never_accused(data: st.DataObject) -> None:
    """Whatever happens at one moment inside its interval is right, in whatever order it is."""
    moments = data.draw(st.lists(st.integers(0, 1000), min_size=1, max_size=12, unique=True))
    committed, rows = -1, []
    for moment in sorted(moments):
        call_ns = moment - data.draw(st.integers(0, 200))
        return_ns = moment + data.draw(st.integers(0, 200))
        if data.draw(st.booleans()):
            rows.append(told(call_ns, return_ns, committed))
            continue
        offset = data.draw(st.integers(0, 4))
        outcome = data.draw(st.sampled_from(["ok", "fail", "info"]))
        rows.append(sent(call_ns, return_ns, offset, outcome))
        if outcome == "ok" or (outcome == "info" and data.draw(st.booleans())):
            committed = offset
    assert not wrong(*rows)


@pytest.mark.parametrize("offset", [9, 5], ids=["as-committed", "gone-back"])
def test_a_run_is_asked_if_it_has_the_table(
    tmp_path: Path, tasks: TaskSession, offset: int
) -> None:
    run = RunDirectory(tmp_path / "run")
    cluster = {"group_offsets": table(OLD, NEW, told(31, 40, offset))}
    past = history("p1 send t-0 v1 -> ok @0")
    write_tables(run, operations=past.operations, records=past.records, cluster=cluster)
    manifest = replace(MANIFEST, recorded=("group_offsets",))
    write_manifest(run.manifest_path, manifest)
    note_digests(run)
    (found,) = [one for one in check_run(run, session=tasks).checks if one.check == NAME]
    assert found.validity is (Validity.VALID if offset == 9 else Validity.INVALID)
    assert found.figures["keys_count"] == 1
