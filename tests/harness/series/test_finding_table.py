"""How steady findings are, over the record and over stored runs."""

from collections import Counter
from pathlib import Path

from harness.series.finding_table import FindingRow, of_record, of_runs
from harness.series.track_record import read_track_record

ROOT = Path(__file__).parents[3]


def row(**runs: int) -> FindingRow:
    return FindingRow(
        scenario="s",
        release="4.3.1",
        runs=Counter({tuple(k.split("_")): n for k, n in runs.items()}),
    )


def test_every_run_on_record_tells_one_cause() -> None:
    rows = of_record(read_track_record(ROOT / "results" / "track-record"))
    assert sum(one.run_count for one in rows) > 600
    assert [one.cells() for one in rows if not one.steady] == []


def test_no_two_scenarios_share_an_identity() -> None:
    rows = of_record(read_track_record(ROOT / "results" / "track-record"))
    told = {(one.scenario, name) for one in rows for names in one.runs for name in names}
    assert len({name for _, name in told}) == len(told)


def test_one_run_in_twenty_may_differ_and_no_more() -> None:
    assert row(a=19, b=1).steady
    assert not row(a=18, b=2).steady
    # A run with two findings has not one cause.
    assert not row(a=18, a_b=2).steady


def test_a_stored_run_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    torn = tmp_path / "storm" / "20270101T220000Z" / "verdict.json"
    torn.parent.mkdir(parents=True)
    torn.write_text("{")
    rows, troubles = of_runs(tmp_path)
    assert rows == []
    assert str(torn) in troubles[0]
