"""`fencepost gate`: exit codes, known issues, files, and what is told of bad input."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from nights_at_rates import night, run

from fencepost.harness.cli.main import main

A = "storm/stale-epoch-join/AlterPartition:leader→controller"
KNOWN = """\
known:
  - finding: storm/stale-epoch-join
    issue: KAFKA-14139
    reason: fixed in 3.5
    until: {until}
"""


@pytest.fixture
def gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def told(*flags: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["gate", "--results", str(tmp_path), *flags])
        out = capsys.readouterr()
        return int(ended.value.code or 0), out.out, out.err

    return told


def known(tmp_path: Path, *, until: str = "2999-01-31", more: str = "") -> str:
    path = tmp_path / "known.yaml"
    path.write_text(KNOWN.format(until=until) + more, encoding="utf-8")
    return str(path)


def test_exit_codes_mask_nothing(tmp_path: Path, gate: Any) -> None:
    valid, bad = run(), run(findings=[A])
    unknown, failed = run(verdict="unknown", reason="thin"), run(verdict="failed", reason="port")
    for number, (runs, code) in enumerate(
        [
            ([valid], 0),
            ([valid, unknown], 2),
            ([valid, unknown, failed], 255),
            ([valid, unknown, failed, bad], 1),
            ([], 2),
        ]
    ):
        night(tmp_path, number, runs)
        assert gate()[0] == code, runs


def test_a_night_that_is_not_whole_is_not_enough(tmp_path: Path, gate: Any) -> None:
    night(tmp_path, 0, [run()], ended=False)
    assert gate()[0] == 2
    left = {"entry": 1, "scenario": "smoke", "release": "4.3.1", "runs": 9, "reason": "no time"}
    night(tmp_path, 1, [run()], left_out=[left])
    code, out, _ = gate()
    assert code == 2
    assert "9 runs of smoke 4.3.1 were left out: no time" in out


def test_a_known_issue_suspends_the_gate_until_its_date(tmp_path: Path, gate: Any) -> None:
    night(tmp_path, 0, [run(findings=[A])])
    assert gate("--known", known(tmp_path))[0] == 0
    code, out, _ = gate("--known", known(tmp_path, until="2026-01-31"))
    assert code == 1
    assert "it was known until 2026-01-31" in out
    assert gate("--known", known(tmp_path, until="soon"))[0] == 1


def test_a_known_issue_is_about_its_releases_and_its_rate(tmp_path: Path, gate: Any) -> None:
    night(tmp_path, 0, [run(findings=[A])] * 9 + [run()])
    assert gate("--known", known(tmp_path, more="    releases: [4.3.1]\n"))[0] == 0
    assert gate("--known", known(tmp_path, more="    releases: [3.9.2]\n"))[0] == 1
    assert gate("--known", known(tmp_path, more="    rate_max: 0.9\n"))[0] == 0
    assert gate("--known", known(tmp_path, more="    rate_max: 0.1\n"))[0] == 1


def test_a_part_of_a_checks_name_suspends_nothing(tmp_path: Path, gate: Any) -> None:
    night(tmp_path, 0, [run(findings=["storm/stale-epoch-join-else"])])
    assert gate("--known", known(tmp_path))[0] == 1


def test_unused_known_issues_warn(tmp_path: Path, gate: Any) -> None:
    night(tmp_path, 0, [run()])
    code, out, _ = gate("--known", known(tmp_path))
    assert code == 0
    assert "known.yaml:2" in out


def test_what_is_printed_for_a_new_finding_is_an_entry_of_the_file(
    tmp_path: Path, gate: Any
) -> None:
    night(tmp_path, 0, [run(findings=[A])])
    _, out, _ = gate()
    entry = out[out.index("  - finding:") :].replace("TODO", "2999-01-31")
    path = tmp_path / "pasted.yaml"
    path.write_text(f"known:\n{entry}", encoding="utf-8")
    assert gate("--known", str(path))[0] == 0


def test_the_scenario_may_reckon_with_a_finding(tmp_path: Path, gate: Any) -> None:
    night(tmp_path, 0, [run(findings=[A], verdict="valid")])
    assert gate()[0] == 0


def test_the_scenario_may_expect_a_finding_of_the_release_and_no_other_one(
    tmp_path: Path, gate: Any
) -> None:
    expected = run(findings=[A], expected=[A])
    night(tmp_path, 0, [expected, run()])
    code, out, _ = gate("--junit", str(tmp_path / "gate.xml"))
    assert code == 0
    assert "known storm/stale-epoch-join" in out
    assert "suspended by the scenario, which expects it of this release" in out
    root = ET.parse(tmp_path / "gate.xml").getroot()
    (skipped,) = root.iter("skipped")
    suspended = "suspended by the scenario, which expects it of this release"
    assert suspended in skipped.get("message", "")
    other = "storm/lost-write"
    night(tmp_path, 1, [run(findings=[A, other], expected=[A])])
    code, _, _ = gate("--junit", str(tmp_path / "gate.xml"))
    assert code == 1
    root = ET.parse(tmp_path / "gate.xml").getroot()
    assert [len(list(root.iter(tag))) for tag in ("skipped", "failure")] == [1, 1]
    # Found in one run where it is not expected, it gates.
    night(tmp_path, 2, [expected, run(findings=[A])])
    assert gate()[0] == 1


@pytest.mark.parametrize("expected", [7, [""], [1]])
def test_a_night_whose_expected_findings_cannot_be_read_is_refused(
    tmp_path: Path, gate: Any, expected: object
) -> None:
    night(tmp_path, 0, [run(findings=[A], expected=expected)])
    code, _, err = gate()
    assert code == 254
    assert "runs[0]: expected" in err


def test_annotations_are_of_new_findings_alone(tmp_path: Path, gate: Any) -> None:
    night(tmp_path, 0, [run(findings=[A])])
    assert gate("--annotations")[1].startswith("::error title=new finding::")
    night(tmp_path, 1, [run(findings=[A])])
    code, out, _ = gate("--annotations")
    assert (code, out.strip()) == (1, "")


def test_an_alert_has_ten_lines_at_most(tmp_path: Path, gate: Any) -> None:
    night(tmp_path, 0, [run(findings=[f"storm/check-{number}" for number in range(40)])])
    lines = gate("--alert")[1].splitlines()
    assert len(lines) == 10
    assert lines[-1] == "and 32 more"


def test_files_for_a_ci(tmp_path: Path, gate: Any) -> None:
    night(tmp_path, 0, [run(findings=[A]), run(findings=["storm/x|<b>"]), run(verdict="unknown")])
    summary, junit, ctrf = (tmp_path / name for name in ("s.md", "j.xml", "c.json"))
    flags = ["--summary", str(summary), "--junit", str(junit), "--ctrf", str(ctrf)]
    assert gate(*flags, "--known", known(tmp_path))[0] == 1
    suite = ET.parse(junit).getroot()[0]
    counts = {name: int(suite.get(name, "")) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": 3, "failures": 1, "errors": 1, "skipped": 1}
    assert "KAFKA-14139" in suite.findall("testcase/skipped")[0].get("message", "")
    results = json.loads(ctrf.read_text("utf-8"))["results"]
    assert {"name", "status", "duration"} <= set(results["tests"][0])
    summed = results["summary"]
    assert (summed["tests"], summed["failed"], summed["skipped"], summed["other"]) == (3, 1, 1, 1)
    assert "storm/x\\|&lt;b>" in summary.read_text("utf-8")
    gate(*flags)
    assert summary.read_text("utf-8").count("## ") == 2


def test_json_has_it_all(tmp_path: Path, gate: Any) -> None:
    night(tmp_path, 0, [run(findings=[A])])
    code, out, _ = gate("--json")
    content = json.loads(out)
    assert code == content["exit_code"] == 1
    assert [(one["identity"], one["call"]) for one in content["findings"]] == [(A, "new")]


def test_a_preview_says_what_a_rule_would_have_done(tmp_path: Path, gate: Any) -> None:
    for number in range(3):
        night(tmp_path, number, [run(findings=[A])])
    without = gate("--preview")[1].splitlines()
    assert [line.split(":")[0] for line in without] == ["exit code 1", "  new"] + [
        "exit code 1",
        "  ongoing",
    ] * 2
    code, out, _ = gate("--preview", "--known", known(tmp_path, until="2027-01-02"))
    assert code == 0
    assert [line.split(":")[0] for line in out.splitlines()] == [
        "exit code 0",
        "exit code 0",
        "exit code 1",
        "  ongoing",
    ]


def test_one_night_may_be_held_against_one_other(tmp_path: Path, gate: Any) -> None:
    first = night(tmp_path, 0, [run(findings=[A])])
    night(tmp_path, 1, [run()])
    night(tmp_path, 2, [run(findings=[A])])
    assert ": ongoing" not in gate("--against", "nightly")[1]
    assert "ongoing" in gate("--against", str(first))[1]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("known:\n  - finding: storm/x\n    issue: A\n    reason: b\n", "known.yaml:2: known[0]"),
        (KNOWN.format(until="2999-01-01") + "    untl: 1\n", "known.yaml:6: known[0].untl"),
        (KNOWN.format(until="2999-01-01") + "    rate_max: 7\n", "known.yaml:6: "),
        ("known:\n  - finding: storm\n    issue: A\n", "known.yaml:2: known[0].finding"),
        ("knwon: []\n", "known.yaml:1: knwon"),
        ("- a\n", "known.yaml:1: "),
        ("known: [\n", "known.yaml:"),
        ("known: 7\n", "known.yaml:1: known"),
        ("known: [7]\n", "known.yaml:1: known[0]"),
    ],
)
def test_what_is_wrong_in_known_issues_has_its_line(
    tmp_path: Path, gate: Any, content: str, place: str
) -> None:
    night(tmp_path, 0, [run()])
    path = tmp_path / "known.yaml"
    path.write_text(content, encoding="utf-8")
    code, out, err = gate("--known", str(path))
    assert (code, out) == (254, "")
    assert place in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "7",
        "{}",
        json.dumps({"night": "n", "started_at": "x", "ended_at": None, "runs": 7, "left_out": []}),
        json.dumps(
            {"night": "n", "started_at": "x", "ended_at": None, "runs": [7], "left_out": []}
        ),
        "[" * 100_000,
    ],
)
def test_a_broken_night_is_one_line(tmp_path: Path, gate: Any, content: str) -> None:
    path = night(tmp_path, 0, [run()])
    path.write_text(content, encoding="utf-8")
    code, out, err = gate()
    assert (code, out) == (254, "")
    assert err.count("\n") == 1
    assert str(path) in err


def test_without_a_night_there_is_one_line(gate: Any) -> None:
    for flags in ([], ["nightly"], ["/nowhere"]):
        code, out, err = gate(*flags)
        assert (code, out, err.count("\n")) == (254, "", 1)
