"""Tables in a pipe are 100 columns wide at most, and nothing of them is cut."""

from pathlib import Path

import pytest

from fencepost.harness.cli.main import main
from fencepost.harness.cli.tables import console, table_of
from fencepost.harness.doctor import doctor
from fencepost.harness.doctor.doctor import DoctorFinding
from fencepost.harness.scenario.sources import library


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    with pytest.raises(SystemExit):
        main(arguments)
    return capsys.readouterr().out.splitlines()


def test_the_doctor_keeps_to_its_width_and_says_everything(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = "/a/path/" + "that/has/no/place/to/break/it/" * 6
    finding = DoctorFinding(
        what="a disk", ok=False, found=f"no room at {path}", way_out="make room " * 30, needed=True
    )
    monkeypatch.setattr(doctor, "examine", lambda *_: [finding])
    lines = printed(capsys, "doctor", "--results", str(tmp_path))
    assert max(map(len, lines)) <= 100
    shown = "".join("".join(line.split()) for line in lines)
    assert shown.count("makeroom") == 30
    assert "…" not in shown


def test_a_scenario_is_a_line_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "scenarios")
    assert {line.split("\t")[0] for line in lines} == set(library())
    assert len(lines) == len(library())


def test_scenarios_are_found_by_word_kind_and_system(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "scenarios", "--word", "UPGRADE", "--kind", "nightly")
    assert [line.split("\t")[0] for line in lines] == ["downgrade", "upgrade"]
    lines = printed(capsys, "scenarios", "--word", "kafka-14139", "--kind", "bugs")
    on_zookeeper = printed(
        *(capsys, "scenarios", "--word", "kafka-14139", "--system", "kafka-zookeeper")
    )
    assert "kip-903" in {line.split("\t")[0] for line in lines}
    assert "kip-903" not in {line.split("\t")[0] for line in on_zookeeper}


def test_a_long_word_goes_on_in_the_next_line(capsys: pytest.CaptureFixture[str]) -> None:
    table = table_of("a", "b")
    table.add_row("x" * 150, "y" * 150)
    console().print(table)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    assert (out.count("x"), out.count("y")) == (150, 150)
