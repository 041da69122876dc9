"""The record of what reproductions found, and the page that shows it."""

from dataclasses import replace
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from series_doubles import BOTH, SilentProgress, runner, subject, ticking, verdict

from fencepost.checkers.verdict import Validity
from fencepost.harness.scenario.expectation import Expectation, parse_expectations
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.harness.scenario.sources import find_scenario, library
from fencepost.harness.series.reproduce import planned, reproduce
from fencepost.harness.series.reproduction import Expected, Reproduction
from fencepost.harness.series.reproduction_file import read_reproduction, write_reproduction
from fencepost.harness.series.track_record import (
    BEGIN,
    END,
    add_to_track_record,
    as_named_now,
    read_track_record,
    table,
    with_table,
    without_series,
)
from fencepost.history.failure import HarnessError, UsageError

pytestmark = pytest.mark.slow

COMMAND = "fencepost reproduce trial --runs 4 --seed 7"
ROOT = Path(__file__).parents[3]


def reproduction(tmp_path: Path, *, hits: int, runs: int = 4) -> Reproduction:
    subjects = [subject(tmp_path, release, runs=runs) for release in ("3.4.1", "4.3.1")]
    done = reproduce(
        planned(subjects, command=COMMAND),
        subjects,
        path=tmp_path / "20260301T080000Z.json",
        progress=SilentProgress(),
        run=runner(*[verdict(*BOTH)] * hits, *[verdict()] * (2 * runs - hits)),
        clock=ticking(),
    )
    dated = replace(done, started_at="2026-03-01T08:00:00+00:00", fencepost_version="0.1.0")
    write_reproduction(tmp_path / "20260301T080000Z.json", dated)
    return dated


def test_the_page_shows_the_record_that_is_kept() -> None:
    page = (ROOT / "docs/track-record.md").read_text()
    shown = page.partition(f"{BEGIN}\n")[2].partition(END)[0]
    scenarios = (load_scenario(path, []) for path in library().values())
    recorded = as_named_now(read_track_record(ROOT / "results/track-record"), scenarios)
    assert shown == table(recorded), "run `make docs`"


def test_every_release_that_a_scenario_names_has_its_series() -> None:
    scenarios = [load_scenario(path, []) for path in library().values()]
    recorded = as_named_now(read_track_record(ROOT / "results/track-record"), scenarios)
    missing = [
        f"{scenario.name} on {release}" for scenario, release in without_series(scenarios, recorded)
    ]
    assert not missing, "`fencepost track-record --missing`, or say no longer that it was tried"


def test_kip_903_is_on_record_on_every_kind_of_host() -> None:
    recorded = read_track_record(ROOT / "results/track-record")
    text = table(recorded)
    for host in ("", ", docker", ", netns", ", ssh"):
        for release, says in (("3.4.1", "fires"), ("4.3.1", "holds")):
            assert f"| `kip-903` (KAFKA-14139) | {release}{host} | {says} |" in text


def test_a_release_that_a_scenario_names_needs_a_series_that_is_as_expected(
    tmp_path: Path,
) -> None:
    claim = Expectation(
        releases=SpecifierSet(""), validity=Validity.VALID, tried=("3.4.1", "4.3.1", "3.9.2")
    )
    trial = load_scenario(find_scenario("smoke"), [])
    trial = replace(trial, name="trial", expect=(claim,))

    def missing(*recorded: Reproduction) -> list[str]:
        return [release for _, release in without_series([trial], recorded)]

    assert missing() == ["3.4.1", "4.3.1", "3.9.2"]
    assert missing(reproduction(tmp_path, hits=4)) == ["3.9.2"]
    # 3.4.1 is to fire, and does not.
    assert missing(reproduction(tmp_path, hits=0)) == ["3.4.1", "3.9.2"]
    at_3_5 = replace(trial, cluster=replace(trial.cluster, metadata_version="3.5"))
    assert len(list(without_series([at_3_5], [reproduction(tmp_path, hits=4)]))) == 3


def test_a_series_made_before_anything_was_expected_counts_for_what_is_expected_since(
    tmp_path: Path,
) -> None:
    trial = replace(load_scenario(find_scenario("smoke"), []), name="trial")
    trial = replace(trial, cluster=replace(trial.cluster, metadata_version=None))
    found = reproduction(tmp_path, hits=4)
    unstated = [replace(one, expected=Expected.UNSTATED) for one in found.series]
    found = replace(found, series=tuple(unstated))

    def missing(*entries: dict[str, object]) -> list[str]:
        stating = replace(trial, expect=parse_expectations(list(entries)))
        recorded = as_named_now([found], [stating])
        return [release for _, release in without_series([stating], recorded)]

    fires: dict[str, object] = {"invalid": list(BOTH), "tried": ["3.4.1"]}
    assert not missing(fires)
    assert not missing({"kafka": ">=4", "valid": True, "tried": ["4.3.1"]})
    # It fires there.
    assert missing({"valid": True, "tried": ["3.4.1"]}) == ["3.4.1"]
    # These were not counted.
    assert missing({**fires, "invalid": ["stuck-isr"]}) == ["3.4.1"]


def test_the_table_names_rate_interval_command_machine_and_date(tmp_path: Path) -> None:
    lines = table([reproduction(tmp_path, hits=4)]).splitlines()
    assert lines[2:] == [
        "| `trial` (KAFKA-1) | 3.4.1 | fires | 4/4 | 51 to 100 % | 10.0 s | lost-write, unseen |",
        "| `trial` (KAFKA-1) | 4.3.1 | holds | 0/4 | 0 to 49 % | 10.0 s | nothing |",
        "",
        f"- `{COMMAND}`: 1 March 2026, 2 cores, 24 GiB, Java 17.0.13, Fencepost 0.1.0",
    ]


def test_what_is_not_as_expected_stands_out(tmp_path: Path) -> None:
    text = table([reproduction(tmp_path, hits=0)])
    assert "| 3.4.1 | fires: **NOT as expected** | 0/4 |" in text


def test_the_newest_series_of_a_release_counts(tmp_path: Path) -> None:
    old = reproduction(tmp_path, hits=0)
    new = replace(
        reproduction(tmp_path, hits=4), started_at="2026-04-01T08:00:00+00:00", command="again"
    )
    record = tmp_path / "record"
    record.mkdir()
    write_reproduction(record / "a.json", new)
    write_reproduction(record / "b.json", old)
    text = table(read_track_record(record))
    assert text.count("| `trial`") == 2
    assert "4/4" in text
    assert "1 March" not in text


def test_each_kind_of_host_has_a_row_of_its_own_and_proves_nothing_of_the_others(
    tmp_path: Path,
) -> None:
    local = reproduction(tmp_path, hits=4)
    in_docker = [replace(one, versions={**one.versions, "host": "docker"}) for one in local.series]
    both = [replace(local, series=tuple(in_docker), command="docker"), local]
    text = table(both)
    assert "| `trial` (KAFKA-1) | 3.4.1, docker | fires | 4/4 |" in text
    assert "| `trial` (KAFKA-1) | 3.4.1 | fires | 4/4 |" in text
    claim = Expectation(releases=SpecifierSet(""), validity=Validity.VALID, tried=("3.4.1",))
    trial = replace(load_scenario(find_scenario("smoke"), []), name="trial", expect=(claim,))
    assert list(without_series([trial], both[:1]))
    assert not list(without_series([trial], both))


def test_an_inventory_is_on_record_by_its_name(tmp_path: Path) -> None:
    made = reproduction(tmp_path, hits=4)
    place = str(tmp_path / "machines.yaml")
    series = [replace(one, versions={**one.versions, "inventory": place}) for one in made.series]
    command = f"{COMMAND} --host ssh --inventory {place} --results {tmp_path}"
    path = tmp_path / "20260301T080000Z.json"
    write_reproduction(path, replace(made, command=command, series=tuple(series)))
    kept = add_to_track_record(path, tmp_path / "record")
    assert read_reproduction(kept).command == f"{COMMAND} --host ssh --inventory machines.yaml"
    assert str(tmp_path) not in kept.read_text()


def test_a_series_joins_the_record_under_its_scenario_and_time(tmp_path: Path) -> None:
    made = reproduction(tmp_path, hits=4)
    kept = add_to_track_record(tmp_path / "20260301T080000Z.json", tmp_path / "record")
    assert kept.name == "trial-20260301T080000Z.json"
    found = read_reproduction(kept)
    assert found.command == made.command
    assert [one.rate for one in found.series] == [one.rate for one in made.series]


def test_the_record_says_nothing_of_the_machine_s_places(tmp_path: Path) -> None:
    made = reproduction(tmp_path, hits=4)
    assert made.series[0].runs[0].run is not None
    command = f"{COMMAND} --results {tmp_path}"
    write_reproduction(tmp_path / "20260301T080000Z.json", replace(made, command=command))
    kept = add_to_track_record(tmp_path / "20260301T080000Z.json", tmp_path / "record")
    assert str(tmp_path) not in kept.read_text()
    found = read_reproduction(kept)
    assert found.command == COMMAND
    assert found.series[0].runs[0].run == "/".join(Path(made.series[0].runs[0].run).parts[-2:])


def test_a_series_without_a_run_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    write_reproduction(path, planned([subject(tmp_path, "3.4.1", runs=1)], command="c"))
    with pytest.raises(UsageError, match="no run to keep"):
        add_to_track_record(path, tmp_path / "record")


def test_the_table_replaces_what_stood_between_the_markers(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    with_table(page, "new\n")
    with_table(page, "new\n")
    assert page.read_text() == f"before\n{BEGIN}\nnew\n{END}\nafter\n"


def test_a_page_without_markers_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("nothing here\n")
    with pytest.raises(UsageError, match="no markers"):
        with_table(page, "new\n")
    assert page.read_text() == "nothing here\n"


def test_a_damaged_file_of_the_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "torn.json").write_text("{")
    with pytest.raises(HarnessError, match=r"torn\.json"):
        read_track_record(tmp_path)
