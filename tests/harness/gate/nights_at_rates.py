"""Nights with planted rates, drawn from a seed: the cluster does not change unless told."""

import json
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2027, 1, 1, 22, tzinfo=UTC)


def run(
    scenario: str = "storm",
    *,
    findings: Sequence[str] = (),
    verdict: str | None = None,
    release: str | None = "4.3.1",
    **given: Any,
) -> dict[str, Any]:
    return {
        "entry": 0,
        "scenario": scenario,
        "system": "kafka",
        "cluster": "kafka",
        "release": release,
        "host": "local",
        "variant": "",
        "seed": 7,
        "run": f"{scenario}/20270101T220000Z",
        "verdict": verdict or ("invalid" if findings else "valid"),
        "reason": "",
        "findings": list(findings),
        "seconds": 60.0,
        **given,
    }


def night(
    results: Path,
    number: int,
    runs: Sequence[dict[str, Any]],
    *,
    ended: bool = True,
    left_out: Sequence[dict[str, Any]] = (),
) -> Path:
    """Write the night of this number, a day after the one before."""
    began = START + timedelta(days=number)
    folder = results / "nights" / "nightly" / began.strftime("%Y%m%dT%H%M%SZ")
    folder.mkdir(parents=True)
    content = {
        "night": "nightly",
        "file": "nightly.yaml",
        "command": "fencepost night nightly.yaml",
        "started_at": began.isoformat(),
        "ended_at": began.isoformat() if ended else None,
        "runs": list(runs),
        "left_out": list(left_out),
    }
    (folder / "night.json").write_text(json.dumps(content), encoding="utf-8")
    return folder / "night.json"


def drawn(rates: Mapping[str, float], *, runs: int, draw: random.Random) -> list[dict[str, Any]]:
    """Runs of which each has each finding at its rate."""
    return [
        run(findings=[name for name, rate in rates.items() if draw.random() < rate])
        for _ in range(runs)
    ]
