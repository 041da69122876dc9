"""A run of random faults says how many there were a minute, and how long there was none."""

from dataclasses import replace
from pathlib import Path

from synthetic_run import VERDICT, RunSpec, write_run

from fencepost.history.manifest import NemesisWork, read_manifest, write_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.report.head import head_of
from fencepost.report.reading import read_run
from fencepost.report.terminal import verdict_text

WORK = NemesisWork(
    work_s=120.0,
    fault_count=25,
    idle_s=9.5,
    idle_at_s=61.0,
    idle_for="recovery: broker-2",
    waits_s={"turn": 1.0, "recovery": 12.0},
)


def stormy(directory: Path, work: NemesisWork | None) -> RunDirectory:
    run = write_run(directory, RunSpec(rate=20, verdict=VERDICT))
    write_manifest(run.manifest_path, replace(read_manifest(run.manifest_path), nemesis=work))
    return run


def test_the_terminal_says_how_often_it_struck_and_what_it_waited_for(tmp_path: Path) -> None:
    lines = verdict_text(VERDICT, stormy(tmp_path, WORK)).plain.split("\n")
    assert (
        "  nemesis 12.5 faults a minute; nothing broken, though due, for 9.50 s at most "
        "(from 61.000 s on: recovery: broker-2); waited in all 12.0 s for recovery, 1.00 s for turn"
    ) in lines


def test_a_play_and_a_run_without_faults_have_no_such_line(tmp_path: Path) -> None:
    lines = verdict_text(VERDICT, stormy(tmp_path, None)).plain.split("\n")
    assert not [line for line in lines if "nemesis" in line]


def test_the_head_of_the_page_has_it(tmp_path: Path) -> None:
    run = stormy(tmp_path, WORK)
    facts = {fact.label: fact for fact in head_of(run, read_run(run)).figures}
    assert facts["faults a minute"].value == "12.5"
    assert facts["faults a minute"].remark == "nothing broken, though due, for 9.50 s at most"


def test_the_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_manifest(stormy(tmp_path, WORK).manifest_path).nemesis == WORK
