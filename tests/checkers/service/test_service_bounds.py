"""The bounds of service: the smallest history that breaks one, and the nearest that keeps it."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from histories import history
from manifests import MANIFEST
from proving import facts_of_proof

from fencepost.checkers.anomaly import Anomaly, anomalies_of
from fencepost.checkers.grounds.grounds import fault_windows
from fencepost.checkers.runner.tables import SealedFile
from fencepost.checkers.runner.tasks import InProcessTasks
from fencepost.checkers.service.bounds import CHECKS, bounds_kept, unproven
from fencepost.checkers.service.level import ServicePass, service_level, service_pass
from fencepost.checkers.service.uses import USES, sums_of_files
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.beat import STALL
from fencepost.history.manifest import Manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import (
    CUT_SEGMENTS,
    FAULTS,
    MODEL_OPERATIONS,
    OPERATIONS,
    SAMPLES,
    TABLES,
)

_S = 1_000_000_000
_NAMES = tuple(entry.name for entry in CHECKS)
_HELD = replace(
    MANIFEST,
    cluster="simulated",
    end_ns=10_000 * _S,
    required_bounds={"unavailable_max_s": 10.0, "p99_max_ms": 2000.0},
)

GOOD = """
    p1 send t-0 v1 -> ok @0 in 0..1
    p1 send t-0 v2 -> ok @1 in 2..12
"""
SILENT = GOOD.replace("2..12", "2..13")
CRASHED = GOOD.replace("2..12", "2..13").replace(
    "@0 in 0..1", "@0 in 0..1\n    p2 send t-0 v7 -> info in 1..9"
)


def _faults(*rows: tuple[str, int, int | None]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "index": index,
                "fault": fault,
                "targets": ["broker-1"],
                "begin_ns": begin * _S,
                "effect_ns": begin * _S,
                "end_ns": None if end is None else end * _S,
            }
            for index, (fault, begin, end) in enumerate(rows)
        ],
        schema=FAULTS,
    )


def _in_seconds(table: pa.Table) -> pa.Table:
    for name in ("call_ns", "return_ns"):
        place = table.schema.get_field_index(name)
        scaled = pc.multiply(table.column(name), pa.scalar(_S))
        table = table.set_column(place, table.schema.field(name), scaled)
    return table


def _pass(
    tmp_path: Path, table: pa.Table, faults: pa.Table, name: str = "operations"
) -> ServicePass:
    path = tmp_path / f"{name}.parquet"
    pq.write_table(_in_seconds(table).cast(TABLES[name]), path)
    sums = sums_of_files(
        [SealedFile(path=str(path), digest="")],
        USES[name],
        fault_windows(faults),
        least_ns=_S,
        bound_ns=2 * _S,
    )
    uses = {use.name: one for use, one in zip(USES[name], sums, strict=True) if one.ask_count}
    return ServicePass(uses=uses, main=tuple(uses), failures=(), seconds=0.0)


def _judged(
    tmp_path: Path,
    text: str,
    faults: pa.Table | None = None,
    *,
    unproven_because: tuple[str, ...] = (),
) -> tuple[dict[str, CheckResult], list[Anomaly]]:
    faults = _faults(("kill", 0, 20)) if faults is None else faults
    found = _pass(tmp_path, history(text).operations, faults)
    answers = bounds_kept(_NAMES, _HELD, faults, found, unproven_because=unproven_because)
    return {one.check: one for one in answers.results}, list(anomalies_of(answers.anomalies))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (GOOD, Validity.VALID),
        (SILENT, Validity.INVALID),
        (CRASHED, Validity.INVALID),
        # Nobody asked from 12 on.
        (GOOD + "    p1 send t-0 v3 -> ok @2 in 900..901\n", Validity.VALID),
        # Another key was served.
        (SILENT + "    p1 send t-1 v3 -> ok @0 in 13..14\n", Validity.INVALID),
        # The next ask is answered while the slow one still waits.
        (SILENT + "    p1 send t-0 v3 -> ok @2 in 5..6\n", Validity.VALID),
        # It is not known how long this one waited.
        (GOOD + "    p1 send t-0 v3 -> info in 13..open\n", Validity.VALID),
        # Those who waited gave up.
        (GOOD + "    p1 send t-0 v3 -> info in 13..24\n", Validity.INVALID),
    ],
)
def test_a_long_silence(tmp_path: Path, text: str, answer: Validity) -> None:
    results, _ = _judged(tmp_path, text)
    assert results["long-silence"].validity is answer


def test_a_silence_is_proven_by_the_operations_around_and_in_it(tmp_path: Path) -> None:
    _, (anomaly,) = _judged(tmp_path, CRASHED)
    facts = facts_of_proof(anomaly.proof)
    assert (anomaly.check, anomaly.key) == ("long-silence", "t-0")
    assert (facts["before"], facts["after"], facts["count"]) == (0, 2, 2)
    assert (facts["begin"], facts["end"]) == (1000.0, 13000.0)  # ms
    assert anomaly.operations == (0, 1, 2)


def test_time_in_which_the_machine_stood_still_is_no_silence(tmp_path: Path) -> None:
    results, _ = _judged(tmp_path, SILENT, _faults((STALL, 4, 6)))
    assert results["long-silence"].validity is Validity.VALID


@pytest.mark.parametrize("reason", ["the recording of producer-0 is cut short"])
def test_no_silence_is_proven_where_an_operation_may_be_missing(
    tmp_path: Path, reason: str
) -> None:
    results, _ = _judged(tmp_path, SILENT, unproven_because=(reason,))
    assert {one.validity for one in results.values()} == {Validity.UNKNOWN}


def test_what_says_that_an_operation_may_be_missing(tmp_path: Path) -> None:
    found = _pass(tmp_path, history(GOOD).operations, _faults())
    cut = pa.Table.from_pylist(
        [{"time_ns": 0, "source": "producer-0", "metric": CUT_SEGMENTS, "value": 1.0}],
        schema=SAMPLES,
    )
    none = SAMPLES.empty_table()
    gap = {"dense-indices": CheckResult(check="dense-indices", validity=Validity.UNKNOWN)}
    assert unproven(_HELD, none, found, {}) == []
    assert unproven(_HELD, cut, found, {})
    assert unproven(replace(_HELD, end_ns=None), none, found, {})
    assert unproven(_HELD, none, found, gap)
    assert unproven(_HELD, none, replace(found, failures=("it is torn",)), {})


def test_a_table_that_cannot_be_read_leaves_the_bounds_unknown(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.table_path("operations").mkdir(parents=True)
    (run.table_path("operations") / "part-00000.parquet").write_bytes(b"torn")
    found = service_pass(run, _HELD, _faults(), session=InProcessTasks(), budget_s=60.0)
    assert found.failures
    because = unproven(_HELD, SAMPLES.empty_table(), found, {})
    answers = bounds_kept(_NAMES, _HELD, _faults(), found, unproven_because=because)
    assert {one.validity for one in answers.results} == {Validity.UNKNOWN}


def _sends(*spent: int) -> str:
    lines, time = [], 0
    for number, seconds in enumerate(spent):
        lines.append(f"p1 send t-0 v{number} -> ok @{number} in {time}..{time + seconds}")
        time += seconds + 1
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "faults", "answer"),
    [
        (_sends(*[1] * 99, 3), (), Validity.VALID),
        (_sends(*[1] * 98, 3), (), Validity.INVALID),
        (_sends(*[1] * 98, 2), (), Validity.VALID),
        (_sends(3, *[1] * 98), (("kill", 2, 3),), Validity.VALID),
        (_sends(3), (("kill", 0, None),), Validity.VALID),
        # A crashed one has no latency.
        (_sends(*[1] * 98) + "\np2 send t-0 v500 -> info in 300..400", (), Validity.VALID),
    ],
)
def test_the_p99_outside_faults(
    tmp_path: Path, text: str, faults: tuple[tuple[str, int, int | None], ...], answer: Validity
) -> None:
    results, _ = _judged(tmp_path, text, _faults(*faults))
    assert results["slow-p99"].validity is answer


def test_a_slow_p99_names_the_slowest_operations(tmp_path: Path) -> None:
    _, (anomaly,) = _judged(tmp_path, _sends(1, 3, 1, 4), _faults())
    facts = facts_of_proof(anomaly.proof)
    assert (facts["slow_count"], facts["count"], facts["longest"]) == (2, 4, 4000.0)  # ms
    assert set(anomaly.operations[:2]) == {1, 3}


def test_emptied_operations_accuse_nobody(tmp_path: Path) -> None:
    found = _pass(tmp_path, OPERATIONS.empty_table(), _faults())
    answers = bounds_kept(_NAMES, _HELD, _faults(), found, unproven_because=())
    assert [one.anomaly_count for one in answers.results] == [0, 0]
    level = service_level(_HELD, _faults(), found, {})
    assert (level.loss, level.uses) == (None, ())


def _objects(*rows: tuple[str, str, int, int | None, str, str | None]) -> pa.Table:
    told = [
        {
            "index": index,
            "process": index,
            "key": key,
            "f": f,
            "call_ns": call,
            "return_ns": end,
            "outcome": outcome,
            "error": error,
        }
        for index, (key, f, call, end, outcome, error) in enumerate(rows)
    ]
    return pa.Table.from_pylist(told, schema=MODEL_OPERATIONS)


def test_a_refusal_is_an_answer_and_a_failure_is_none(tmp_path: Path) -> None:
    rows = [("a", "write", 0, 1, "ok", None), ("a", "cas", 2, 20, "info", None)]
    refused = _objects(*rows, ("a", "cas", 9, 10, "fail", None), ("a", "read", 0, 30, "ok", None))
    failed = _objects(*rows, ("a", "cas", 9, 10, "fail", "NO_LEADER"))
    writes = [
        _pass(tmp_path, table, _faults(), "model_operations").uses["writes"].silences["a"].kept[0]
        for table in (refused, failed)
    ]
    assert [one.length_ns for one in writes] == [10 * _S, 18 * _S]
    found = _pass(tmp_path, refused, _faults(), "model_operations")
    assert list(found.uses) == ["writes", "reads"]
    assert found.uses["reads"].silences["a"].kept[0].length_ns == 30 * _S


def test_the_keys_of_objects_are_ended_one_after_the_other(tmp_path: Path) -> None:
    table = _objects(
        ("a", "write", 0, 5, "ok", None),
        ("a", "final-read", 6, 50, "ok", None),
        ("b", "write", 1, 4, "ok", None),
    )
    found = _pass(tmp_path, table, _faults(), "model_operations")
    lengths = {key: one.kept[0].length_ns for key, one in found.uses["writes"].silences.items()}
    assert lengths == {"a": 5 * _S, "b": 3 * _S}
    assert "reads" not in found.uses


def test_the_level_of_service_names_the_fault_of_the_longest_silence(tmp_path: Path) -> None:
    faults = _faults(("pause", 2, 3), ("kill", 4, 9), ("cut", 500, 600))
    found = _pass(tmp_path, history(SILENT).operations, faults)
    results = {
        name: CheckResult(check=name, validity=validity, anomaly_count=count)
        for name, validity, count in (
            ("lost-write", Validity.INVALID, 2),
            ("unseen", Validity.VALID, 0),
        )
    }
    level = service_level(_HELD, faults, found, results)
    longest = level.uses[0].longest
    assert longest is not None
    assert (longest.key, longest.begin_s, longest.length_s) == ("t-0", 2.0, 11.0)
    assert [one.index for one in longest.faults] == [1, 0]
    assert level.loss is not None
    assert (level.loss.acknowledged_count, level.loss.lost_count) == (2, 2)
    unknown = {**results, "lost-write": replace(results["lost-write"], validity=Validity.UNKNOWN)}
    level = service_level(_HELD, faults, found, unknown)
    assert level.loss is not None
    assert level.loss.lost_count is None


def test_a_history_of_another_tool_has_no_level_of_service(tmp_path: Path) -> None:
    foreign: Manifest = replace(MANIFEST, model="register")
    run = RunDirectory(tmp_path)
    found = service_pass(run, foreign, _faults(), session=InProcessTasks(), budget_s=60.0)
    assert (found.uses, found.failures) == ({}, ())
