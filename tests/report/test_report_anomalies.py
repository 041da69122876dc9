from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_run import VERDICT, RunSpec, result, write_run

from fencepost.checkers.anomaly import ANOMALIES, Anomaly
from fencepost.checkers.verdict import Validity, Verdict
from fencepost.history.failure import HarnessError
from fencepost.history.reader import load_table, table_files
from fencepost.report.anomalies import (
    RECORDS_AN_OPERATION_MAX,
    groups_in,
    groups_of,
    operations_at,
    records_of,
)


def anomaly(*operations: int, allowed: bool = False, **others: object) -> Anomaly:
    content = {
        "check": "duplicate",
        "key": "t-0",
        "allowed": allowed,
        "operations": operations,
        "offsets": (),
        "values": (),
        "detail": "x",
    }
    return Anomaly.of_row(content | others)


def write(directory: Path, anomalies: list[Anomaly], name: str = "duplicate") -> None:
    rows = [a.row() for a in anomalies]
    path = directory / f"{name}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=ANOMALIES), path, row_group_size=7)


@given(
    rows=st.lists(
        st.tuples(st.booleans(), st.lists(st.integers(0, 99), max_size=4, unique=True)),
        min_size=1,
        max_size=40,
    )
)
def test_the_smallest_come_first_and_all_are_counted(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[bool, list[int]]]
) -> None:
    directory = tmp_path_factory.mktemp("anomalies")
    write(directory, [anomaly(*operations, allowed=allowed) for allowed, operations in rows])
    (group,) = groups_in(directory)
    illegal = [operations for allowed, operations in rows if not allowed]
    assert group.illegal_count == len(illegal)
    assert group.allowed_count == len(rows) - len(illegal)
    shown = [list(a.operations) for a in group.smallest if not a.allowed]
    size = [(len(operations), (operations or [0])[0]) for operations in illegal]
    assert [(len(ops), (ops or [0])[0]) for ops in shown] == sorted(size)[:4]


def test_violated_checks_come_before_legal_findings(tmp_path: Path) -> None:
    write(tmp_path, [anomaly(1, allowed=True)], "a-legal")
    write(tmp_path, [anomaly(1)], "z-illegal")
    write(tmp_path, [], "empty")
    groups = groups_of(groups_in(tmp_path), Verdict.of(()))
    assert [group.check for group in groups] == ["z-illegal", "a-legal"]


def test_the_verdict_counts_more_than_the_file_spells_out(tmp_path: Path) -> None:
    write(tmp_path, [anomaly(1), anomaly(2)])
    verdict = Verdict.of([result("duplicate", Validity.INVALID, count=1_000_000, allowed=7)])
    (group,) = groups_of(groups_in(tmp_path), verdict)
    assert (group.illegal_count, group.allowed_count, group.row_count) == (999_993, 7, 2)


def test_where_a_file_is_gone_the_verdict_s_examples_stand(tmp_path: Path) -> None:
    verdict = Verdict.of([result("duplicate", Validity.INVALID, count=3, examples=[anomaly(5)])])
    (group,) = groups_of(groups_in(tmp_path), verdict)
    assert group.smallest == (anomaly(5),)
    assert group.row_count == 0


def test_a_run_without_anomalies_has_no_groups(tmp_path: Path) -> None:
    assert groups_of(groups_in(tmp_path / "anomalies"), VERDICT) == ()


def test_another_schema_is_refused_by_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"check": ["x"]}), tmp_path / "duplicate.parquet")
    with pytest.raises(HarnessError, match=r"duplicate\.parquet"):
        groups_in(tmp_path)


def test_operations_are_found_across_files(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(rate=20))
    operations = load_table(run, "operations").to_pylist()
    wanted = [3, len(operations) - 1, 10**9]
    found = operations_at(table_files(run, "operations"), wanted)
    assert sorted(found) == wanted[:2]
    for index, operation in found.items():
        for name in ("process", "f", "key", "call_ns", "return_ns", "outcome", "error"):
            assert getattr(operation, name) == operations[index][name]


def test_records_of_an_anomaly_are_the_ones_it_is_about(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(rate=400))
    rows = load_table(run, "records").to_pylist()
    polled = next(r for r in rows if r["f"] == "poll" and r["position"] > 2)
    about = anomaly(polled["operation"], key=polled["key"], values=(polled["value"],))
    files = table_files(run, "records")
    ((operation, (record,)),) = records_of(files, about).items()
    assert (operation, record.offset, record.value) == (
        polled["operation"],
        polled["offset"],
        polled["value"],
    )
    everything = records_of(files, anomaly(polled["operation"], key=polled["key"]))
    assert 1 < len(everything[operation]) <= RECORDS_AN_OPERATION_MAX
