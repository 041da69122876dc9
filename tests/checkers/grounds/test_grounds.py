"""Without grounds there is no verdict."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from histories import history
from judging import summary
from manifests import MANIFEST

from fencepost.checkers.grounds.fault_kinds import kinds_in
from fencepost.checkers.grounds.grounds import course, fault_windows, run_grounds
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.history.manifest import Manifest, NemesisWork
from fencepost.history.schema import CUT_SEGMENTS, FAULTS, SAMPLES

GOOD = """
    p1 send t-0 v1 -> ok @0          in 0..4
    c1 poll -> t-0 [v1@0]            in 5..9
    p1 send t-0 v2 -> ok @1          in 12..14
    c1 poll -> t-0 [v2@1]            in 14..19
    r1 final t-0 -> [v1@0 v2@1]      in 30..40
    """


Span = tuple[int | None, int | None]


def _faults(*spans: Span, kinds: tuple[str | None, ...] = ()) -> pa.Table:
    """Kills, effective from and to; `kinds`: what they were done for, if not for themselves."""
    rows = [
        {
            "index": index,
            "fault": "kill",
            "targets": ["broker-1"],
            "begin_ns": 10,
            "effect_ns": effect,
            "end_ns": end,
            "kind": kind,
        }
        for index, ((effect, end), kind) in enumerate(
            zip(spans, kinds or [None] * len(spans), strict=True)
        )
    ]
    return pa.Table.from_pylist(rows, schema=FAULTS)


def _judged(text: str, faults: pa.Table, **asked: Any) -> dict[str, CheckResult]:
    sums = summary(history(text).operations, windows=fault_windows(faults))
    manifest = replace(_manifest(), **asked)
    results = run_grounds(sums, why_no_summary="", faults=faults, manifest=manifest)
    return {result.check: result for result in results}


def _effects(faults: pa.Table, **asked: Any) -> CheckResult:
    return _judged(GOOD, faults, **asked)["fault-effects"]


def _evidence(text: str, faults: pa.Table, **asked: Any) -> str:
    return _judged(text, faults, **asked)["evidence"].reason


def _manifest(*, end_ns: int | None = 50, shortfalls: tuple[str, ...] = ()) -> Manifest:
    return replace(MANIFEST, end_ns=end_ns, shortfalls=shortfalls)


def _samples(*sources: str) -> pa.Table:
    rows = [
        {"time_ns": 0, "source": source, "metric": CUT_SEGMENTS, "value": 1.0} for source in sources
    ]
    return pa.Table.from_pylist(rows, schema=SAMPLES)


def _stalls(*seconds: float) -> pa.Table:
    """Times in which all processes stood still, of so many seconds each."""
    rows = [
        {
            "index": index,
            "fault": "stall",
            "targets": ["broker-1"],
            "begin_ns": index * 10**9,
            "effect_ns": index * 10**9,
            "end_ns": int((index + length) * 10**9),
            "kind": "stall",
        }
        for index, length in enumerate(seconds)
    ]
    return pa.Table.from_pylist(rows, schema=FAULTS)


def test_a_run_that_went_as_planned_to_its_end_has_that_ground() -> None:
    assert course(_manifest(), _samples(), _stalls()).validity is Validity.VALID


def test_a_run_whose_processes_all_stood_still_is_weighed() -> None:
    manifest = _manifest(end_ns=60 * 10**9)
    short = course(manifest, _samples(), _stalls(4.0))
    assert (short.validity, short.figures["machine_stalled_s"]) == (Validity.VALID, 4.0)
    long = course(manifest, _samples(), _stalls(4.0, 16.0))
    assert long.validity is Validity.UNKNOWN
    assert "all processes of the run stood still for 20.0 of 60.0 s" in long.reason


def test_a_stall_of_the_machine_is_no_fault_that_was_asked_for() -> None:
    effects = _effects(_stalls(4.0), asked_faults=("kill",), drawn=True)
    assert effects.reason == "none of the faults that were asked for (kill) took effect"
    # Nor is any client to be served meanwhile; but it is told.
    assert "stall" not in _evidence(GOOD, _stalls(4.0))
    assert _effects(_stalls(4.0)).figures["stall_effect_count"] == 1


def test_a_recording_that_was_cut_short_is_unknown() -> None:
    result = course(_manifest(), _samples("producer-0"), _stalls())
    assert result.validity is Validity.UNKNOWN
    assert result.reason == "the recording of producer-0 is cut short"


def test_a_step_whose_bound_passed_makes_the_run_unknown_and_is_named() -> None:
    result = course(_manifest(shortfalls=("step 2 of 5: its bound passed",)), _samples(), _stalls())
    assert (result.validity, result.reason) == (Validity.UNKNOWN, "step 2 of 5: its bound passed")


def test_the_course_has_the_figures_of_the_random_faults_where_there_were_any() -> None:
    work = NemesisWork(
        work_s=120.0,
        fault_count=25,
        idle_s=9.5,
        idle_at_s=61.0,
        idle_for="recovery: broker-2",
        waits_s={"recovery": 12.0, "lost disk": 1.5},
    )
    assert course(replace(_manifest(), nemesis=work), _samples(), _stalls()).figures == {
        "faults_a_minute": 12.5,
        "nemesis_idle_max_s": 9.5,
        "waited_for_recovery_s": 12.0,
        "waited_for_lost_disk_s": 1.5,
    }
    assert not course(_manifest(), _samples(), _stalls()).figures


def test_a_recording_that_did_not_come_to_its_end_is_unknown() -> None:
    assert course(_manifest(end_ns=None), _samples(), _stalls()).validity is Validity.UNKNOWN


def test_sends_polls_and_a_final_read_are_grounds_for_a_control() -> None:
    assert not _evidence(GOOD, _faults())


def test_sends_and_polls_during_the_faults_are_grounds() -> None:
    assert not _evidence(GOOD, _faults((11, 15)))


@pytest.mark.parametrize(
    ("lines", "lacking"),
    [
        ("send", "no send was acknowledged"),
        ("poll", "no ok poll returned a record"),
        ("final", "no final read is complete"),
    ],
)
def test_what_was_never_done_is_lacking(lines: str, lacking: str) -> None:
    rest = "\n".join(line for line in GOOD.splitlines() if f" {lines} " not in line)
    assert lacking in _evidence(rest, _faults())


def test_operations_that_were_called_outside_the_faults_are_no_evidence() -> None:
    reason = _evidence(GOOD, _faults((20, 25)))
    assert "no send that was called during kill was acknowledged" in reason
    assert "no ok poll that was called during kill returned a record" in reason


def test_one_fault_with_evidence_is_enough_for_all_of_its_kind() -> None:
    assert not _evidence(GOOD, _faults((11, 15), (20, 25)))


def test_evidence_during_one_kind_is_none_for_another() -> None:
    faults = _faults((11, 15), (20, 25), kinds=("kill", "pause"))
    assert _evidence(GOOD, faults) == (
        "no send that was called during pause was acknowledged; "
        "no ok poll that was called during pause returned a record"
    )


def test_where_no_client_can_be_served_the_scenario_says_during_which_kinds_some_have_to() -> None:
    faults = _faults((11, 15), (20, 25), kinds=("kill", "pause"))
    assert not _evidence(GOOD, faults, served_faults=("kill",))
    assert "during pause" in _evidence(GOOD, faults, served_faults=("pause",))


def test_a_kind_that_was_drawn_twice_owes_evidence_only_if_it_is_demanded() -> None:
    twice = _faults((11, 15), (20, 25), (26, 28), kinds=("kill", "pause", "pause"))
    assert not _evidence(GOOD, twice, drawn=True)
    assert "during pause" in _evidence(GOOD, twice, drawn=True, required_faults=("pause",))
    three_times = _faults((20, 25), (26, 28), (28, 29), (11, 15), kinds=(*["pause"] * 3, "kill"))
    assert "during pause" in _evidence(GOOD, three_times, drawn=True)


def test_during_drawn_faults_somebody_was_served() -> None:
    lacking = _evidence(GOOD, _faults((20, 25), (26, 28), kinds=("kill", "pause")), drawn=True)
    assert "no send that was called during any fault was acknowledged" in lacking
    assert "no ok poll that was called during any fault returned a record" in lacking
    assert not _evidence(GOOD, _faults(), drawn=True)
    assert not _evidence(GOOD, _faults((20, 25)), drawn=True, served_faults=())


def test_a_kind_that_had_no_effect_owes_no_evidence() -> None:
    assert not _evidence(GOOD, _faults((11, 15), (None, None), kinds=("kill", "delay")))


def test_a_fault_that_never_healed_lasts_to_the_end() -> None:
    assert not _evidence(GOOD, _faults((11, None)))


def test_a_poll_that_returned_nothing_is_no_evidence() -> None:
    empty = GOOD.replace("c1 poll -> t-0 [v2@1] ", "c1 poll -> nothing     ")
    assert "no ok poll that was called" in _evidence(empty, _faults((11, 15)))


def test_a_fault_without_an_effect_is_unknown_by_name() -> None:
    result = _judged(GOOD, _faults((11, 15), (None, None)))["fault-effects"]
    assert result.validity is Validity.UNKNOWN
    assert "1 of 2 faults" in result.reason
    assert "kill of broker-1 (fault 1)" in result.reason


def test_drawn_faults_that_all_met_nothing_are_unknown_whoever_drew_them() -> None:
    """A trial tells no kinds that it was asked for."""
    assert _effects(_faults((None, None)), drawn=True).validity is Validity.UNKNOWN
    assert _effects(_faults((None, None), (11, 15)), drawn=True).validity is Validity.VALID
    assert _effects(_stalls(4.0), drawn=True).validity is Validity.VALID


@pytest.mark.parametrize("drawn", [False, True])
def test_a_run_that_was_asked_for_faults_and_had_none_is_unknown(*, drawn: bool) -> None:
    for faults in (_faults(), _faults((None, None))):
        result = _effects(faults, asked_faults=("kill", "pause"), drawn=drawn)
        assert result.validity is Validity.UNKNOWN
        assert result.reason == "none of the faults that were asked for (kill, pause) took effect"


def test_a_control_was_asked_for_none_and_has_none() -> None:
    result = _effects(_faults())
    assert (result.validity, result.case_count) == (Validity.VALID, 0)


def test_a_drawn_fault_without_effect_is_counted_and_spoils_nothing() -> None:
    faults = _faults((11, 15), (None, None), kinds=("kill", "delay"))
    result = _effects(faults, asked_faults=("kill", "delay", "pause"), drawn=True)
    assert (result.validity, result.case_count) == (Validity.VALID, 2)
    assert result.figures == {
        "kill_begun_count": 1,
        "kill_effect_count": 1,
        "kill_acknowledged_sends_count": 1,
        "kill_reads_count": 1,
        "delay_begun_count": 1,
        "delay_effect_count": 0,
        "delay_acknowledged_sends_count": 0,
        "delay_reads_count": 0,
        "pause_begun_count": 0,
        "pause_effect_count": 0,
        "pause_acknowledged_sends_count": 0,
        "pause_reads_count": 0,
    }
    kinds = kinds_in(Verdict.of([result]))
    assert [(one.kind, one.begun_count, one.reads_count) for one in kinds] == [
        ("kill", 1, 1),
        ("delay", 1, 0),
        ("pause", 0, 0),
    ]


def test_a_step_of_a_play_without_effect_is_unknown() -> None:
    faults = _faults((11, 15), (None, None))
    assert "1 of 2 faults" in _effects(faults, asked_faults=("kill",)).reason
    assert not _effects(faults, asked_faults=("kill",), drawn=True).reason


def test_a_kind_that_the_scenario_demands_has_to_take_effect() -> None:
    asked = {"asked_faults": ("kill", "pause"), "drawn": True}
    faults = _faults((11, 15), (None, None), kinds=("kill", "pause"))
    assert not _effects(faults, required_faults=("kill",), **asked).reason
    result = _effects(faults, required_faults=("kill", "pause"), **asked)
    assert result.validity is Validity.UNKNOWN
    assert result.reason == "the scenario demands pause, and none took effect"


def test_what_was_done_for_a_kind_is_counted_to_it() -> None:
    wipe = _faults((11, 15), (12, 15), kinds=("wipe", "wipe"))
    assert not _effects(wipe, asked_faults=("wipe",), required_faults=("wipe",)).reason


def test_figures_count_operations_by_time_and_by_fault() -> None:
    figures = _judged(GOOD, _faults((None, None), (11, 15)))["statistics"].figures
    assert figures["send_ok_before_count"] == 1
    assert figures["send_ok_during_count"] == 1
    assert figures["send_ok_during_fault_1_count"] == 1
    assert figures["final_read_ok_after_count"] == 1
    assert figures["faults_count"] == 2


def test_errors_that_the_registry_does_not_know_are_counted() -> None:
    failed = history(GOOD + "p1 send t-0 v3 -> info in 20..25\np1 send t-0 v4 -> fail in 26..27")
    known = failed.operations["error"].to_pylist()
    known[-2] = "_MSG_TIMED_OUT"
    place = failed.operations.schema.get_field_index("error")
    operations = failed.operations.set_column(place, "error", pa.array(known))
    results = run_grounds(
        summary(operations, windows=()), why_no_summary="", faults=_faults(), manifest=_manifest()
    )
    assert results[0].figures["send_error__MSG_TIMED_OUT_count"] == 1
    assert results[0].figures["unexpected_errors_count"] == 1


def test_quantiles_of_latency_are_within_two_percent() -> None:
    lines = [f"p1 send t-0 v{n} -> ok @{n} in {n}..{n + n * 1000}" for n in range(1, 101)]
    figures = _judged("\n".join(lines), _faults())["statistics"].figures
    assert figures["send_latency_p50_ms"] == pytest.approx(50_000 / 1e6, rel=0.02)
    assert figures["send_latency_max_ms"] == pytest.approx(100_000 / 1e6, rel=0.02)


def test_without_the_operations_there_are_no_grounds() -> None:
    results = run_grounds(
        None, why_no_summary="torn", faults=_faults((11, 15)), manifest=_manifest()
    )
    assert results[1].figures == {"kill_begun_count": 1, "kill_effect_count": 1}
    assert [result.reason for result in results] == ["torn", "", "torn"]
