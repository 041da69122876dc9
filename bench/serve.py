"""Measure the web page: the time to the first paint in Chromium, over many runs and nights."""

import json
import random
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from shutil import which
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any, Final

from fencepost.checkers.catalogue import CATALOGUE
from fencepost.checkers.verdict import CheckResult, RunFinding, Validity, Verdict, write_verdict
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest, Promises, RunState, write_manifest
from fencepost.history.run_directory import RunDirectory

_NAME: Final = "nightly"
_BEGAN: Final = datetime(2027, 1, 1, 22, tzinfo=UTC)
_START_S: Final = 60.0
_TIMEOUT_MS: Final = 120_000.0
_LOOK_MS: Final = 10.0
_RATE: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeFigures:
    """Milliseconds from the request to the first contentful paint: the first time, and later."""

    runs: int
    nights: int
    start_seconds: float
    """From the command to its first answer."""
    first_ms: Mapping[str, float]
    later_ms: Mapping[str, float]
    """The median of the repetitions."""

    def as_data(self) -> object:
        """Return them for JSON."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """Return them as lines of text."""
        yield f"{self.runs} runs in {self.nights} nights; up in {self.start_seconds:.1f} s"
        for page, first in self.first_ms.items():
            yield f"{page}: first paint {first:.0f} ms, later {self.later_ms[page]:.0f} ms"


def serve_bench(*, runs: int, nights: int, repetitions: int) -> ServeFigures:
    """Return what Chromium measures of the server, a process. Raises HarnessError without one."""
    chromium = chromium_path()
    if chromium is None:
        raise HarnessError("this takes Chromium; on Debian: apt-get install chromium")
    with TemporaryDirectory() as folder:
        made_results(Path(folder), runs=runs, nights=nights)
        port, began_s = _free_port(), monotonic()
        words = [sys.executable, "-m", "fencepost", "serve", "--port", str(port)]
        with subprocess.Popen([*words, "--results", folder], stdout=subprocess.DEVNULL) as server:
            try:
                _await(port, until_s=began_s + _START_S)
                start_seconds = monotonic() - began_s
                night = (_BEGAN + timedelta(days=nights - 1)).strftime("%Y%m%dT%H%M%SZ")
                pages = {
                    "overview": "/",
                    "nights": f"/nights/{_NAME}",
                    "night": f"/nights/{_NAME}/{night}",
                    "scenario": "/scenarios/storm",
                    "runs": "/runs",
                    "run": "/runs/storm/latest",
                }
                painted = _painted(chromium, port, pages, repetitions=repetitions)
            finally:
                server.terminate()
    return ServeFigures(
        runs=runs,
        nights=nights,
        start_seconds=start_seconds,
        first_ms={page: times[0] for page, times in painted.items()},
        later_ms={page: median(times[1:]) for page, times in painted.items()},
    )


def chromium_path() -> str | None:
    """Return the path of the system's Chromium, or None."""
    return which("chromium") or which("chromium-browser")


def made_results(results: Path, *, runs: int, nights: int) -> None:
    """Write runs with verdicts of the whole catalogue, each in one of the nights."""
    draw = random.Random(1)  # noqa: S311 - nothing secret
    a_night = -(-runs // nights)
    for number in range(nights):
        began = _BEGAN + timedelta(days=number)
        mine = range(number * a_night, min(runs, (number + 1) * a_night))
        told = [_run(results, began + timedelta(minutes=2 * i), i, draw) for i in mine]
        folder = results / "nights" / _NAME / f"{began:%Y%m%dT%H%M%SZ}"
        folder.mkdir(parents=True)
        content = {
            "night": _NAME,
            "file": "nightly.yaml",
            "command": "fencepost night nightly.yaml",
            "started_at": began.isoformat(),
            "ended_at": (began + timedelta(hours=8)).isoformat(),
            "runs": told,
            "left_out": [],
        }
        (folder / "night.json").write_text(json.dumps(content), encoding="utf-8")


def _run(results: Path, began: datetime, number: int, draw: random.Random) -> dict[str, Any]:
    """Write one run, and return what its night says of it."""
    release = draw.choice(["3.9.2", "4.3.1"])
    run = RunDirectory(results / "storm" / f"{began:%Y%m%dT%H%M%SZ}-{number % 100:02}")
    run.root.mkdir(parents=True)
    manifest = Manifest(
        run_id=f"storm/{run.root.name}",
        state=RunState.CHECKED,
        scenario="storm",
        title="Random faults",
        seed=number + 1,
        started_at=began.isoformat(),
        origin_ns=0,
        end_ns=60_000_000_000,
        command=f"fencepost run storm --seed {number + 1}",
        fencepost_version="0.1.0",
        system="kafka",
        cluster="kafka",
        host="local",
        versions={"kafka": release},
        promises=Promises(idempotent=True, acks="all", consume="assign"),
    )
    write_manifest(run.manifest_path, manifest)
    found = ["lost-write"] if draw.random() < _RATE else []
    verdict = Verdict.of(
        (_answer(entry.name, invalid=entry.name in found) for entry in CATALOGUE),
        findings=[_finding(name) for name in found],
    )
    write_verdict(run.verdict_path, verdict)
    page = "<!doctype html><html lang=en><title>report</title><h1>The report</h1></html>"
    run.report_path.write_text(page, encoding="utf-8")
    return {
        "entry": 0,
        "scenario": "storm",
        "system": "kafka",
        "cluster": "kafka",
        "release": release,
        "host": "local",
        "variant": "",
        "seed": number + 1,
        "run": f"storm/{run.root.name}",
        "verdict": str(verdict.validity),
        "reason": "",
        "findings": [f"storm/{name}" for name in found],
        "seconds": 60.0,
    }


def _answer(name: str, *, invalid: bool) -> CheckResult:
    validity = Validity.INVALID if invalid else Validity.VALID
    reason = "3 were found" if invalid else ""
    count = 3 if invalid else 0
    return CheckResult(
        check=name, validity=validity, case_count=100, anomaly_count=count, reason=reason
    )


def _finding(check: str) -> RunFinding:
    return RunFinding(
        identity=f"storm/{check}",
        check=check,
        title="An acknowledged record is gone",
        scenario="storm",
        count=3,
        culprit=(),
        key="orders-4",
    )


def _painted(
    chromium: str, port: int, pages: Mapping[str, str], *, repetitions: int
) -> dict[str, list[float]]:
    """Return the times to the first contentful paint of each page, in ms, as they came."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - not every install has it

    paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
    times: dict[str, list[float]] = {page: [] for page in pages}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(repetitions + 1):
            for page, path in pages.items():
                tab = browser.new_page()
                tab.set_default_timeout(_TIMEOUT_MS)
                tab.goto(f"http://127.0.0.1:{port}{path}")
                # A look a time: the page's own policy forbids what waits inside of it.
                while (painted_ms := tab.evaluate(paint)) is None:
                    tab.wait_for_timeout(_LOOK_MS)
                times[page].append(float(painted_ms))
                tab.close()
        browser.close()
    return times


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def _await(port: int, *, until_s: float) -> None:
    """Wait for the first answer: the port is open before the server is whole."""
    while True:
        connection = HTTPConnection("127.0.0.1", port, timeout=_START_S)
        try:
            connection.request("GET", "/static/serve.css")
            connection.getresponse().read()
        except OSError:
            if monotonic() > until_s:
                raise HarnessError("the server did not come up") from None
            sleep(0.05)
        else:
            return
        finally:
            connection.close()
