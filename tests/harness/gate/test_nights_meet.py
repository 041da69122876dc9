"""A night is written by one package and read by another: both know the same file."""

from datetime import UTC, datetime
from pathlib import Path

from fencepost.harness.gate.nights import read_night, stored_night
from fencepost.harness.series.night import Night, NightRun, NightStore, left_out
from fencepost.harness.series.night_file import Cell

CELL = Cell(
    entry=0,
    scenario="storm",
    issue=None,
    system="kafka",
    cluster="kafka",
    release="4.3.1",
    host="docker",
    variant="--nemesis kill",
    arguments=("storm",),
    bound_s=60.0,
)


def test_what_a_night_stores_is_what_the_gate_reads(tmp_path: Path) -> None:
    run = NightRun(
        **CELL.names,
        seed=7,
        run="storm/20260101T200000Z",
        verdict="invalid",
        reason="lost-write: 17",
        findings=("storm/lost-write",),
        seconds=61.5,
    )
    begun = Night(
        night="own",
        file="own.yaml",
        command="fencepost night own.yaml",
        started_at="2026-01-01T20:00:00+00:00",
        runs=(run, run),
        left_out=(left_out(CELL, runs=3, reason="no time left"),),
    )
    NightStore.create(tmp_path, "own", datetime(2026, 1, 1, 20, tzinfo=UTC)).write(begun)
    read = read_night(stored_night(tmp_path, "own"))
    assert (read.name, read.ended, len(read.runs)) == ("own", False, 2)
    [first, _] = read.runs
    assert (first.seed, first.run, first.verdict) == (7, run.run, "invalid")
    assert (first.findings, first.seconds) == (run.findings, run.seconds)
    subject = {name: getattr(first.subject, name) for name in CELL.names if name != "entry"}
    assert subject == {name: CELL.names[name] for name in subject}
    [left] = read.left_out
    assert (left.scenario, left.release, left.runs) == ("storm", "4.3.1", 3)
