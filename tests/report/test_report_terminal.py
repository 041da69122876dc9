from dataclasses import replace
from pathlib import Path

from rich.console import Console
from synthetic_run import KINDS, VERDICT, RunSpec, result, verdict_with, write_run

from fencepost.checkers.anomaly import Anomaly
from fencepost.checkers.proof import Proof
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.history.manifest import RunState
from fencepost.history.run_directory import RunDirectory
from fencepost.report.page import write_page
from fencepost.report.terminal import verdict_text


def verdict_lines(verdict: Verdict | None, run: RunDirectory) -> list[str]:
    return verdict_text(verdict, run).plain.split("\n")


def gone(detail: str) -> Anomaly:
    return Anomaly(
        check="lost-write",
        key="t-0",
        allowed=False,
        proof=Proof.as_told(detail, operations=(1, 2), offsets=(3,), values=(4,)),
    )


def invalid(*details: str) -> Verdict:
    return verdict_with(
        result(
            "lost-write",
            Validity.INVALID,
            reason="2 values are gone.",
            count=len(details),
            examples=[gone(detail) for detail in details],
        ),
        result("evidence", Validity.UNKNOWN, reason="Too few polls."),
    )


def test_a_valid_run_is_told_first_and_how_to_repeat_it_last(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(rate=20, verdict=VERDICT))
    write_page(run)
    lines = verdict_lines(VERDICT, run)
    assert lines[1] == f"VALID: {len(VERDICT.checks)} checks hold."
    assert f"report: {run.report_path}" in lines
    assert lines[-2] == "repeat: fencepost run scenarios/smoke.yaml --kafka 4.3.1 --seed 7"
    assert lines[-1] == "outcome: valid, exit code 0"
    assert lines[0] == (
        "tested: system kafka, cluster not recorded, release 4.3.1, host not recorded, seed 7, "
        "duration 45.0 s"
    )


def test_what_was_waived_comes_before_all_else_that_is_said_of_a_verdict(tmp_path: Path) -> None:
    waived = ("faults kill (--no-require)", "judged lost-write (--no-require)")
    about = {"system": "kafka", "cluster": "reference", "host": "local"}
    run = write_run(tmp_path, RunSpec(sealed=False, waived=waived, about=about))
    lines = verdict_lines(VERDICT, run)
    assert "cluster reference, release 4.3.1, host local" in lines[0]
    assert lines[1].startswith(
        "VALID: Waived, though the scenario demands it: faults kill (--no-require); "
        "judged lost-write (--no-require). "
    )


def test_a_valid_run_names_what_had_nothing_to_judge_and_what_cannot_fail(tmp_path: Path) -> None:
    verdict = verdict_with(
        result("aborted-read", Validity.NOT_JUDGED),
        result("shared-identity", Validity.NOT_JUDGED),
        result("statistics", Validity.FIGURE),
    )
    lines = verdict_lines(verdict, write_run(tmp_path, RunSpec(sealed=False)))
    assert lines[1] == (
        f"VALID: {len(verdict.checks) - 3} checks hold; 2 had nothing to judge: aborted-read, "
        "shared-identity; 1 cannot fail on this cluster: statistics."
    )


def test_a_check_without_a_case_that_gives_a_reason_is_told_with_it(tmp_path: Path) -> None:
    reason = "no window is demanded: 4 laid, 3 opened, 2 struck"
    windows = result("window-strikes", Validity.NOT_JUDGED, reason=reason)
    run = write_run(tmp_path, RunSpec(sealed=False))
    first = verdict_lines(verdict_with(windows), run)[1]
    assert first.endswith(f" checks hold; window-strikes: {reason}.")
    unknown = result("fault-effects", Validity.UNKNOWN, reason="no fault took effect")
    lines = verdict_lines(verdict_with(windows, unknown), run)
    assert f"  not judged: window-strikes: {reason}" in lines
    assert not [line for line in lines if "nothing to judge" in line]


def test_each_kind_of_fault_is_told_and_those_that_never_took_effect_in_the_first_line(
    tmp_path: Path,
) -> None:
    verdict = verdict_with(replace(result("fault-effects"), figures=KINDS))
    lines = verdict_lines(verdict, write_run(tmp_path, RunSpec(sealed=False)))
    assert lines[1].endswith(" checks hold; 1 kind of fault never took effect: delay.")
    assert "  faults  that took effect: cut_power 1 of 2, delay 0" in lines


def test_what_holds_is_a_line_a_subject_with_how_much_was_judged(tmp_path: Path) -> None:
    few, many = (result(name) for name in ("two-leaders", "empty-isr"))
    verdict = Verdict.of([replace(few, case_count=3), replace(many, case_count=1200)])
    lines = verdict_lines(verdict, write_run(tmp_path, RunSpec(sealed=False)))
    held = "  valid   control plane: 2 checks hold, in 3 (two-leaders) to 1,200 (empty-isr) cases"
    assert held in lines
    assert max(len(line) for line in lines) < 200


def test_an_unknown_run_says_why_in_its_first_line_and_ends_with_its_outcome(
    tmp_path: Path,
) -> None:
    verdict = verdict_with(
        result("fault-effects", Validity.UNKNOWN, reason="no fault took effect (kill)"),
        result("aborted-read", Validity.NOT_JUDGED),
    )
    lines = verdict_lines(verdict, write_run(tmp_path, RunSpec(sealed=False)))
    assert lines[1].startswith("UNKNOWN: no fault took effect (kill). No violation was found, but ")
    assert "  not judged: 1 had nothing to judge: aborted-read" in lines
    assert lines[-1] == "outcome: unknown, exit code 2"


def test_a_run_in_which_nothing_could_be_judged_proves_nothing(tmp_path: Path) -> None:
    verdict = Verdict.of([result("aborted-read", Validity.NOT_JUDGED)])
    lines = verdict_lines(verdict, write_run(tmp_path, RunSpec(sealed=False)))
    assert lines[1] == "UNKNOWN: None of 1 check had anything to judge, so nothing is proven."


def test_the_last_line_says_whether_the_scenario_expects_it(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(sealed=False))
    lines = verdict_text(invalid("gone"), run, as_expected=True).plain.split("\n")
    assert lines[-1] == "outcome: invalid, exit code 1, as the scenario expects of this release"


def test_what_does_not_hold_has_its_reason(tmp_path: Path) -> None:
    verdict = invalid("value 4 is gone", "value 5 is gone")
    lines = verdict_lines(verdict, write_run(tmp_path, RunSpec(sealed=False)))
    assert lines[1] == f"INVALID: 1 of {len(verdict.checks)} checks is violated: lost-write (2)."
    assert "  invalid lost-write: 2 values are gone." in lines
    assert "  unknown evidence: Too few polls." in lines


def test_a_run_that_failed_says_why(tmp_path: Path) -> None:
    spec = RunSpec(sealed=False, state=RunState.FAILED, failure="broker-2 did not come up")
    lines = verdict_lines(None, write_run(tmp_path, spec))
    assert lines[1].startswith("FAILED: ")
    assert "  broker-2 did not come up" in lines


def test_hostile_text_neither_moves_the_cursor_nor_is_markup(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(sealed=False))
    hostile = CheckResult(
        check="lost-write", validity=Validity.INVALID, reason="[red]a\x1b[2J\r\nb[/red]"
    )
    lines = verdict_lines(Verdict.of([hostile], run_id="s/1"), run)
    assert not [line for line in lines if "\x1b" in line or "\r" in line]
    assert "  invalid lost-write: [red]a�[2J b[/red]" in lines


def test_a_terminal_shows_what_is_wrong_in_red(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(sealed=False))
    text = verdict_text(invalid("value 4 is gone"), run)
    console = Console(force_terminal=True, width=200, color_system="standard")
    with console.capture() as capture:
        console.print(text)
    assert "\x1b[1;31mINVALID" in capture.get()


def test_a_consequence_stands_beneath_what_it_follows_from(tmp_path: Path) -> None:
    verdict = verdict_with(
        replace(
            result("as-planned", Validity.UNKNOWN, reason="not whole."), follows_from="lost-write"
        ),
        result("lost-write", Validity.INVALID, reason="2 values are gone.", count=2),
        result("evidence", Validity.UNKNOWN, reason="Too few polls."),
    )
    lines = verdict_lines(verdict, write_run(tmp_path, RunSpec(sealed=False)))
    place = lines.index("  invalid lost-write: 2 values are gone.")
    assert lines[place + 1] == "    follows as-planned: not whole."
    assert "  unknown evidence: Too few polls." in lines
    assert not any(line.startswith("  unknown as-planned") for line in lines)
    assert lines[-1] == "outcome: invalid, exit code 1"


def test_what_is_known_is_told_of_a_valid_run(tmp_path: Path) -> None:
    verdict = verdict_with(
        result("refused-but-running", Validity.KNOWN, reason="3 found, known as x.", count=3)
    )
    lines = verdict_lines(verdict, write_run(tmp_path, RunSpec(sealed=False)))
    assert "; refused-but-running is known: 3 found, known as x." in lines[1]
    assert "  known   refused-but-running: 3 found, known as x." in lines
    assert lines[-1] == "outcome: valid, exit code 0"
