"""A reproduction on a terminal, and as JSON with its sums."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from harness.cli.tables import table_of
from harness.series.rate import CONFIDENCE
from harness.series.reproduction import Expected, Reproduction, Series, Standing
from report.notation import counted, length, one_line

__all__ = ["found_lines", "reproduction_json", "series_table"]

_TONES: Final = {
    Standing.AS_EXPECTED: "green",
    Standing.NOT_AS_EXPECTED: "bold red",
    Standing.INCONCLUSIVE: "yellow",
    Standing.UNSTATED: "",
}
_CONFIDENCE_PERCENT: Final = round(100 * CONFIDENCE)


def series_table(reproduction: Reproduction) -> Table:
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


def found_lines(reproduction: Reproduction) -> Iterator[str]:
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
        "runs": [
            {"seed": run.seed, "result": str(run.result), "run": run.run} for run in series.runs
        ],
    }


def _seconds(value: float | None) -> str:
    return "-" if value is None else length(value * 1e9)
