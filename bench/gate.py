"""Measure the gate: the seconds for one night of many runs, with many nights before it."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final

_FINDINGS: Final = 20
_RATE: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFigures:
    """Wall seconds of `fencepost gate` as a process of its own, imports and all."""

    runs_a_night: int
    nights: int
    gate_seconds: float
    preview_seconds: float

    def as_data(self) -> object:
        """Return them for JSON."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """Return them as lines of text."""
        told = f"{self.runs_a_night} runs, {self.nights - 1} nights before of as many"
        yield f"gate: {self.gate_seconds:.1f} s ({told})"
        yield f"gate --preview of all of them: {self.preview_seconds:.1f} s"


def gate_bench(*, runs: int, nights: int) -> GateFigures:
    """Measure the gate on nights that are drawn from a fixed seed."""
    with TemporaryDirectory() as folder:
        draw = random.Random(1)  # noqa: S311 - nothing secret
        for number in range(nights):
            _write(Path(folder), number, runs=runs, draw=draw)
        return GateFigures(
            runs_a_night=runs,
            nights=nights,
            gate_seconds=_seconds(folder),
            preview_seconds=_seconds(folder, "--preview"),
        )


def _write(results: Path, number: int, *, runs: int, draw: random.Random) -> None:
    at = f"202701{number + 1:02}T220000Z"
    content = {
        "night": "bench",
        "started_at": f"2027-01-{number + 1:02}T22:00:00+00:00",
        "ended_at": f"2027-01-{number + 1:02}T23:00:00+00:00",
        "runs": [_run(draw) for _ in range(runs)],
        "left_out": [],
    }
    folder = results / "nights" / "bench" / at
    folder.mkdir(parents=True)
    (folder / "night.json").write_text(json.dumps(content), encoding="utf-8")


def _run(draw: random.Random) -> dict[str, Any]:
    findings = [f"storm/check-{one}" for one in range(_FINDINGS) if draw.random() < _RATE]
    return {
        "scenario": "storm",
        "system": "kafka",
        "cluster": "kafka",
        "release": draw.choice(["3.9.2", "4.3.1"]),
        "host": "local",
        "variant": "",
        "seed": draw.randrange(1 << 30),
        "run": None,
        "verdict": "invalid" if findings else "valid",
        "reason": "",
        "findings": findings,
        "seconds": 60.0,
    }


def _seconds(results: str, *flags: str) -> float:
    command = [sys.executable, "-m", "fencepost", "gate", "--results", results, *flags]
    started = perf_counter()
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    return perf_counter() - started
