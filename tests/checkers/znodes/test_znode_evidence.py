"""The evidence that a run of znodes rests on: enough was done, also while something was broken."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
from manifests import MANIFEST

from fencepost.checkers.grounds.fault_kinds import kinds_in
from fencepost.checkers.grounds.object_evidence import ObjectTally
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.checkers.znodes.group import evidence_of
from fencepost.history.schema import FAULTS

OK = {"create": 2, "set": 9, "cas": 4, "delete": 1, "read": 8, "sync-read": 5, "final-read": 3}
SERVED = {("kill", "write"): 6, ("kill", "read"): 2}
KILL = {
    "index": 0,
    "fault": "kill",
    "targets": ["server-1"],
    "begin_ns": 10,
    "effect_ns": 11,
    "end_ns": 15,
}


def judged(
    *rows: dict[str, Any], ok: dict[str, int] = OK, served: Any = SERVED, **asked: Any
) -> CheckResult:
    manifest = replace(MANIFEST, end_ns=50, **asked)
    faults = pa.Table.from_pylist(list(rows), schema=FAULTS)
    return evidence_of(manifest, faults, [ObjectTally(ok=ok, served=served)])


def test_clients_that_were_served_during_each_kind_of_fault_are_evidence() -> None:
    result = judged(KILL, asked_faults=("kill",))
    assert (result.validity, result.case_count) == (Validity.VALID, 8)


def test_the_kinds_of_fault_and_the_operations_during_each_are_read_back_from_a_verdict() -> None:
    (kill,) = kinds_in(Verdict.of([judged(KILL, asked_faults=("kill",))]))
    assert (kill.kind, kill.begun_count, kill.effect_count) == ("kill", 1, 1)
    assert (kill.acknowledged_sends_count, kill.reads_count) == (6, 2)


def test_a_function_of_which_no_operation_is_ok_is_named() -> None:
    result = judged(KILL, ok=OK | {"cas": 0}, asked_faults=("kill",))
    assert (result.validity, result.reason) == (Validity.UNKNOWN, "no cas is ok")
    assert judged(KILL, ok=OK | {"delete": 0}, asked_faults=("kill",)).validity is Validity.VALID


def test_what_clients_set_out_to_do_is_demanded_and_nothing_else() -> None:
    none = {"ok": OK | {"delete": 0, "cas": 0}, "asked_faults": ("kill",)}
    asked = dict.fromkeys(f for f in OK if f != "cas")
    result = judged(KILL, asked_operations=asked, **none)
    assert (result.validity, result.reason) == (Validity.UNKNOWN, "no delete is ok")
    fewer = {f: None for f in asked if f != "delete"}
    assert judged(KILL, asked_operations=fewer, **none).validity is Validity.VALID


def test_a_kind_of_fault_during_which_no_write_came_through_is_named() -> None:
    result = judged(KILL, served={("kill", "read"): 2}, asked_faults=("kill",))
    assert result.validity is Validity.UNKNOWN
    assert result.reason == "no write that was called during kill is ok"
    only_reads = judged(KILL, served={}, asked_faults=("kill",), served_faults=())
    assert only_reads.validity is Validity.VALID


def test_a_kind_that_was_drawn_once_owes_nothing_of_its_own() -> None:
    drawn = {"asked_faults": ("kill", "pause"), "drawn": True}
    rows = (KILL, KILL | {"index": 1, "fault": "pause", "kind": "pause"})
    assert judged(*rows, **drawn).validity is Validity.VALID
    demanded = judged(*rows, required_faults=("pause",), **drawn)
    assert demanded.reason == (
        "no write that was called during pause is ok; "
        "no sync read that was called during pause is ok"
    )
    assert "during any fault" in judged(*rows, served={}, **drawn).reason


def test_faults_of_which_none_took_effect_prove_nothing() -> None:
    result = judged(KILL | {"effect_ns": None, "end_ns": None}, asked_faults=("kill",))
    assert result.validity is Validity.UNKNOWN
