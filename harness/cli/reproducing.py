"""The body of `fencepost reproduce`."""

import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fencepost.clusters.systems import AUTO, MAKES, system_of
from fencepost.harness.cli.keeping import Keeping
from fencepost.harness.cli.options import emit_json
from fencepost.harness.cli.running import cluster_words, options_from, variant_words
from fencepost.harness.cli.tables import console, table_of
from fencepost.harness.cli.window_table import say_windows
from fencepost.harness.progress import terminal_progress
from fencepost.harness.run.outcome import RunOutcome
from fencepost.harness.run.plan import planned as planned_run
from fencepost.harness.scenario.expectation import tried_releases
from fencepost.harness.scenario.flags import flag_overrides
from fencepost.harness.scenario.on_other_system import key_of_release
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.harness.scenario.sources import find_scenario
from fencepost.harness.seeds import SEED_MAX, new_seed
from fencepost.harness.series.rate import CONFIDENCE
from fencepost.harness.series.reproduce import Subject, planned
from fencepost.harness.series.reproduce import reproduce as run_series
from fencepost.harness.series.reproduction import (
    Expected,
    Reproduction,
    Series,
    SeriesStanding,
    SeriesState,
)
from fencepost.harness.series.reproduction_file import new_reproduction_path
from fencepost.history.failure import HarnessError, UsageError
from fencepost.history.run_directory import RunDirectory
from fencepost.report.notation import counted, length, one_line
from fencepost.report.sums import SummedRun

_INTERRUPTED = 255
_TONES: Final = {
    SeriesStanding.AS_EXPECTED: "green",
    SeriesStanding.NOT_AS_EXPECTED: "bold red",
    SeriesStanding.INCONCLUSIVE: "yellow",
    SeriesStanding.UNSTATED: "",
}
_CONFIDENCE_PERCENT: Final = round(100 * CONFIDENCE)


def reproduce(scenario: str, runs: int, seed: int | None, as_json: bool, **flags: Any) -> int:
    """Run SCENARIO again and again, release by release, and say how often its bug shows."""
    loaded = load_scenario(find_scenario(scenario), flag_overrides({"set": flags["set"]}))
    key = key_of_release(system_of(loaded.cluster))
    # Releases are compared, so the default is what has them.
    if flags["cluster"] == AUTO:
        raise UsageError("--cluster auto: name the cluster on which the releases are compared")
    flags["cluster"] = flags["cluster"] or system_of(loaded.cluster).makes[0].name
    first = seed if seed is not None else new_seed()
    seeds = [(first + number - 1) % SEED_MAX + 1 for number in range(runs)]
    listed = _listed(flags, key)
    if MAKES[flags["cluster"]].of_our_own:
        # Nodes of our own run no release: --kafka is refused with its reason, if it is given.
        releases: list[str | None] = [*listed] or [None]
    else:
        releases = [*(listed or _tried(loaded))]
    subjects = [_subject(scenario, key, release, seeds, flags) for release in releases]
    for subject in subjects:
        _refuse_impossible(subject)
    words = ["fencepost", "reproduce", scenario, *_release_words(key, releases)]
    words += ["--runs", str(runs), "--seed", str(first)]
    plan = planned(subjects, command=_command(words, flags))
    path = new_reproduction_path(flags["results"], plan.scenario, datetime.now(UTC))
    invalid: list[RunDirectory] = []
    variant = shlex.join(variant_words(flags))
    done = _made(plan, subjects, path, variant=variant, invalid=invalid, aside=as_json)
    if done.state is not SeriesState.INTERRUPTED:
        Keeping.from_flags(flags).keep_first(invalid, aside=as_json)
    if as_json:
        emit_json(reproduction_json(done, path))
    return _INTERRUPTED if done.state is SeriesState.INTERRUPTED else done.exit_code


def _made(
    plan: Reproduction,
    subjects: Sequence[Subject],
    path: Path,
    *,
    variant: str,
    invalid: list[RunDirectory],
    aside: bool,
) -> Reproduction:
    """Make the runs and say what they found, also of those before an end that was not planned.

    `invalid`: gets those that are.
    """
    from fencepost.harness.cli.series_end import end_series, summed_outcome
    from fencepost.harness.cli.verdicts import invalid_runs, outcome_json

    runs: list[SummedRun] = []
    asked = len(subjects) * plan.runs_a_release

    def add(
        subject: Subject, options: RunOptions, outcome: RunOutcome | HarnessError, seconds: float
    ) -> None:
        told, scenario = outcome_json(outcome), subject.scenario
        invalid.extend(invalid_runs([outcome]))
        runs.append(summed_outcome(told, scenario, options, seconds=seconds, variant=variant))

    out = console(aside=aside)
    try:
        with terminal_progress() as progress:
            done = run_series(plan, subjects, path=path, progress=progress, each=add)
        _say(done, out)
    finally:
        if runs:
            end_series(
                runs,
                out,
                label="stored",
                stored=path,
                title=f"{plan.scenario}, {len(runs)} of {counted(asked, 'run')}",
                started_at=plan.started_at,
                command=plan.command,
            )
    return done


def _listed(flags: dict[str, Any], key: str) -> list[str]:
    """Return the releases that the user names by the flag of the scenario's system, if any."""
    for other in {"kafka", "release"} - {key}:
        if flags[other] is not None:
            raise UsageError(f"--{other}: this scenario's system takes its releases from --{key}")
    text = flags[key]
    if text is None:
        return []
    releases = [word.strip() for word in text.split(",")]
    if "" in releases or len(set(releases)) < len(releases):
        raise UsageError(f"--{key}: expected different releases, as in 3.4.1,4.3.1; found {text!r}")
    return releases


def _tried(scenario: Scenario) -> list[str]:
    return list(tried_releases(scenario.expect)) or [scenario.cluster.release]


def _subject(
    scenario: str, key: str, release: str | None, seeds: list[int], flags: dict[str, Any]
) -> Subject:
    metadata_version = flags["metadata_version"]
    overrides = flag_overrides({"set": flags["set"]})
    if release is not None:
        overrides.append((("cluster", key), release, f"--{key}"))
    if metadata_version:
        overrides += [(("cluster", "metadata_version"), metadata_version, "--metadata-version")]
    words = _release_words(key, [release])
    return Subject(
        release=flags["cluster"] if release is None else release,
        metadata_version=metadata_version,
        scenario=load_scenario(find_scenario(scenario), overrides),
        options=[
            options_from(
                flags,
                seed=seed,
                command=_command(
                    ["fencepost", "run", scenario, *words, "--seed", str(seed)], flags
                ),
            )
            for seed in seeds
        ],
    )


def _release_words(key: str, releases: Sequence[str | None]) -> list[str]:
    named = [release for release in releases if release is not None]
    return [f"--{key}", ",".join(named)] if named else []


def _refuse_impossible(subject: Subject) -> None:
    """Raise UsageError now for what its first run would refuse: a series takes hours."""
    try:
        planned_run(subject.scenario, subject.options[0], lambda _: None)
    except UsageError:
        raise
    except HarnessError:
        pass  # A failure of today is a result of its runs.


def _command(words: list[str], flags: dict[str, Any]) -> str:
    found = [*words, *variant_words(flags), *cluster_words(flags)]
    if flags["results"] != Path("results"):
        found += ["--results", str(flags["results"])]
    return shlex.join(found)


def _say(done: Reproduction, out: Console) -> None:
    out.print(_series_table(done))
    for line in _found_lines(done):
        out.print(line, markup=False)
    for series in done.series:
        say_windows(series.windows, out, of=f" on {series.label}")
    out.print(done.sentence(), markup=False)


def _series_table(reproduction: Reproduction) -> Table:
    """Return a table with one row a release.

    "median run" is the wall time to the verdict, of the hits where there are any; "first proof" the
    time of the run, in the median too, at which what proves the first anomaly had happened.
    """
    heads = (
        *("release", "hits", f"{_CONFIDENCE_PERCENT} % Wilson", "inconclusive"),
        *("median run", "first proof", "the scenario"),
    )
    table = table_of(*heads)
    for series in reproduction.series:
        table.add_row(*_cells(series))
    return table


def _found_lines(reproduction: Reproduction) -> Iterator[str]:
    """Yield, for each release, the anomalies that were found and the number of runs with them."""
    for series in reproduction.series:
        counts = (f"{name} in {count}" for name, count in series.found.items())
        found = ", ".join(counts) or "nothing"
        runs = counted(len(series.runs), "run")
        yield one_line(f"found on {series.label}, {runs}: {found}")


def reproduction_json(reproduction: Reproduction, path: Path | None) -> dict[str, Any]:
    """Return the sums of each release; the runs themselves stand in the stored file."""
    return {
        "scenario": reproduction.scenario,
        "state": str(reproduction.state),
        "sentence": reproduction.sentence(),
        "exit_code": reproduction.exit_code,
        "command": reproduction.command,
        "stored": None if path is None else str(path),
        "releases": [_series_json(series) for series in reproduction.series],
    }


def _cells(series: Series) -> tuple[Text, ...]:
    rate = series.rate
    low, high = rate.interval()
    interval = f"{100 * low:.1f} to {100 * high:.1f} %" if rate.run_count else "-"
    plain = (
        one_line(series.label),
        f"{rate.hit_count}/{rate.run_count}",
        interval,
        str(series.inconclusive_count),
        _seconds(series.median_seconds),
        _seconds(series.median_proof_seconds),
    )
    says = {Expected.FIRES: "fires there: ", Expected.HOLDS: "holds there: "}
    standing = Text(says.get(series.expected, "") + series.standing, _TONES[series.standing])
    return (*map(Text, plain), standing)


def _series_json(series: Series) -> dict[str, Any]:
    low, high = series.rate.interval()
    return {
        "release": series.release,
        "metadata_version": series.metadata_version,
        "expected": str(series.expected),
        "standing": str(series.standing),
        "hits": series.rate.hit_count,
        "conclusive_runs": series.rate.run_count,
        "inconclusive_runs": series.inconclusive_count,
        "interval": {
            "low": low,
            "high": high,
            "confidence": CONFIDENCE,
            "method": "wilson",
        },
        "median_seconds_to_verdict": series.median_seconds,
        "median_seconds_to_first_proof": series.median_proof_seconds,
        "found_in_runs": dict(series.found),
        "windows": series.windows.as_data(),
        "runs": [
            {"seed": run.seed, "result": str(run.result), "run": run.run} for run in series.runs
        ],
    }


def _seconds(value: float | None) -> str:
    return "-" if value is None else length(value * 1e9)
