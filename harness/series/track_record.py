"""The track record: a table drawn from reproductions that are kept in the repository.

`results/track-record/*.json` are stored reproductions, copied whole. Of each scenario, release,
metadata.version and kind of host the newest series counts, and older ones are not pooled with it:
scenarios and checks change, and a rate is one of a state of both. `docs/track-record.md` has the
table between two markers, and a test sees that it is the one that is drawn from the files.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from fencepost.harness.scenario.expectation import Expectation, expectation_for, tried_releases
from fencepost.harness.scenario.scenario import Scenario
from fencepost.harness.series.reproduce import expected_by
from fencepost.harness.series.reproduction import (
    Expected,
    Reproduction,
    Series,
    SeriesRun,
    SeriesStanding,
)
from fencepost.harness.series.reproduction_file import read_reproduction, write_reproduction
from fencepost.history.failure import UsageError
from fencepost.report.notation import length, one_line

BEGIN: Final = "<!-- track record: `make docs` writes it from results/track-record -->"
END: Final = "<!-- end of the track record -->"
HEADS: Final = (
    "scenario",
    "release",
    "expected",
    "runs with the bug",
    "95 % Wilson",
    "median run",
    "found",
)
_GIB: Final = 1 << 30


def add_to_track_record(path: Path, directory: Path) -> Path:
    """Copy a stored reproduction into the record, and return its path there.

    Its runs are named `<scenario>/<time>`, wherever they lie on this machine.
    Raises HarnessError if the file is no reproduction; UsageError if it has no run.
    """
    found = read_reproduction(path)
    if not any(series.runs for series in found.series):
        raise UsageError(f"{path}: it has no run to keep")
    directory.mkdir(parents=True, exist_ok=True)
    kept = directory / f"{found.scenario}-{path.stem}.json"
    write_reproduction(kept, _portable(found))
    return kept


def read_track_record(directory: Path) -> tuple[Reproduction, ...]:
    """Return all that are kept, by scenario, the newest first.

    Raise HarnessError if one cannot be read.
    """
    found = [read_reproduction(path) for path in sorted(directory.glob("*.json"))]
    newest_first = sorted(found, key=lambda one: one.started_at, reverse=True)
    return tuple(sorted(newest_first, key=lambda one: one.scenario))


def as_named_now(
    recorded: Iterable[Reproduction], scenarios: Iterable[Scenario]
) -> tuple[Reproduction, ...]:
    """Return them with what the scenarios state today: the report, which may have been taken back.

    And the expectation of releases on which none was stated when they ran: such a series is how a
    bound is found. An expectation that was stated then stays, since that is what was put to test.
    """
    known = {scenario.name: scenario for scenario in scenarios}
    return tuple(
        _as_stated_by(known[one.scenario], one) if one.scenario in known else one
        for one in recorded
    )


def _as_stated_by(scenario: Scenario, one: Reproduction) -> Reproduction:
    series = (
        replace(each, expected=expected_by(_counted(scenario.expect, each)))
        if each.expected is Expected.UNSTATED
        and each.metadata_version == scenario.cluster.protocol_level
        else each
        for each in one.series
    )
    return replace(one, issue=scenario.issue, series=tuple(series))


def _counted(expectations: tuple[Expectation, ...], series: Series) -> Expectation | None:
    """Return what is expected on the release, if the series counted those anomalies."""
    found = expectation_for(expectations, release=series.release)
    counted = found is None or not found.anomalies or found.anomalies in series.sought
    return found if counted else None


def without_series(
    scenarios: Iterable[Scenario], recorded: Sequence[Reproduction]
) -> Iterator[tuple[Scenario, str]]:
    """Yield the releases that scenarios state as tried, and whose newest series is missing.

    Nor is one that counts that is not as the scenario expects, or left it open.
    """
    proven = {
        (reproduction.scenario, series.release, series.metadata_version)
        for reproduction, series in _newest(recorded)
        if series.standing is SeriesStanding.AS_EXPECTED and not series.host
    }
    for scenario in scenarios:
        for release in tried_releases(scenario.expect):
            if (scenario.name, release, scenario.cluster.protocol_level) not in proven:
                yield scenario, release


def rows(recorded: Sequence[Reproduction]) -> list[tuple[str, ...]]:
    """Return the cells of each newest series below HEADS, in Markdown."""
    return [_cells(*one) for one in _in_order(recorded)]


def notes(recorded: Sequence[Reproduction]) -> Iterator[str]:
    """Yield command, machine and date of the figures, one line for those that share a command."""
    first: dict[str, Reproduction] = {}
    for one, _ in _in_order(recorded):
        first.setdefault(one.command, one)
    for one in first.values():
        yield f"`{one.command}`: {_day(one.started_at)}, {_machine(one)}"


def table(recorded: Sequence[Reproduction]) -> str:
    """Return the record as Markdown, with where and how its figures were measured."""
    found = rows(recorded)
    if not found:
        return "Nothing is on record yet.\n"
    lines = (" | ".join(cell.replace("|", "\\|") for cell in line) for line in (HEADS, *found))
    head, *body = (f"| {line} |" for line in lines)
    ends = [f"- {note}" for note in notes(recorded)]
    return "\n".join([head, "|---" * len(HEADS) + "|", *body, "", *ends]) + "\n"


def with_table(path: Path, text: str, *, markers: tuple[str, str] = (BEGIN, END)) -> None:
    """Put `text` between the markers of a file; raise UsageError if it does not have them."""
    content = path.read_text(encoding="utf-8")
    before, begin, rest = content.partition(markers[0])
    _, end, after = rest.partition(markers[1])
    if not begin or not end:
        raise UsageError(f"{path} has no markers; expected {markers[0]!r} and {markers[1]!r}")
    path.write_text(f"{before}{begin}\n{text}{end}{after}", encoding="utf-8")


def _portable(found: Reproduction) -> Reproduction:
    """Return the reproduction without the places of this machine."""
    series = tuple(
        replace(
            one,
            runs=tuple(_portable_run(run) for run in one.runs),
            versions={name: _named(name, value) for name, value in one.versions.items()},
        )
        for one in found.series
    )
    return replace(found, command=_portable_command(found.command), series=series)


def _portable_run(run: SeriesRun) -> SeriesRun:
    place = "/".join(Path(run.run).parts[-2:]) if run.run else None
    reason = run.reason.replace(run.run, place) if run.run and place else run.reason
    return replace(run, run=place, reason=reason, command=_portable_command(run.command))


def _portable_command(command: str) -> str:
    """Return the command without the place of results, and with an inventory by its name."""
    words = shlex.split(command)
    if "--results" in words:
        at = words.index("--results")
        del words[at : at + 2]
    if "--inventory" in words:
        at = words.index("--inventory") + 1
        words[at] = _named("inventory", words[at])
    return shlex.join(words)


def _named(name: str, value: str) -> str:
    return Path(value).name if name == "inventory" else value


def _newest(recorded: Iterable[Reproduction]) -> Iterator[tuple[Reproduction, Series]]:
    seen: set[tuple[str, str, str | None, str]] = set()
    for reproduction in recorded:
        for series in reproduction.series:
            key = (reproduction.scenario, series.release, series.metadata_version, series.host)
            if series.runs and key not in seen:
                seen.add(key)
                yield reproduction, series


def _in_order(recorded: Iterable[Reproduction]) -> list[tuple[Reproduction, Series]]:
    return sorted(_newest(recorded), key=lambda row: _place(*row))


def _place(reproduction: Reproduction, series: Series) -> tuple[object, ...]:
    """Return the sort key: by scenario, kind of host and release, old ones first."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", series.release))
    return (
        reproduction.scenario,
        series.host,
        numbers,
        series.release,
        series.metadata_version or "",
    )


def _cells(reproduction: Reproduction, series: Series) -> tuple[str, ...]:
    rate = series.rate
    low, high = (f"{100 * end:.0f}" for end in rate.interval())
    issue = f" ({reproduction.issue})" if reproduction.issue else ""
    left = f", {series.inconclusive_count} inconclusive" if series.inconclusive_count else ""
    cells = (
        f"`{reproduction.scenario}`{issue}",
        series.label,
        _expectation(series),
        f"{rate.hit_count}/{rate.run_count}{left}",
        f"{low} to {high} %" if rate.run_count else "-",
        "-" if series.median_seconds is None else length(series.median_seconds * 1e9),
        ", ".join(series.found) or "nothing",
    )
    return tuple(map(one_line, cells))


def _expectation(series: Series) -> str:
    says = {Expected.FIRES: "fires", Expected.HOLDS: "holds"}.get(series.expected, "-")
    bad = series.standing in (SeriesStanding.NOT_AS_EXPECTED, SeriesStanding.INCONCLUSIVE)
    return f"{says}: **{series.standing}**" if bad else says


def _day(iso: str) -> str:
    at = datetime.fromisoformat(iso)
    return f"{at.day} {at:%B %Y}"


def _machine(reproduction: Reproduction) -> str:
    machine = reproduction.machine
    java = next((s.versions["java"] for s in reproduction.series if "java" in s.versions), None)
    memory = machine.get("memory_bytes", "")
    words = (
        f"{machine['cores']} cores" if "cores" in machine else "",
        f"{int(memory) / _GIB:.0f} GiB" if memory.isdecimal() else "",
        f"Java {java}" if java else "",
        f"Fencepost {reproduction.fencepost_version}",
    )
    return ", ".join(filter(None, words))
