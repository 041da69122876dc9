"""The timeline of a run in a browser: first paint, draws while it pans and zooms, memory.

Without a run it makes one: six nodes and five clients, 60 % frames of the wire (one in a thousand
was held), 40 % operations, 200 faults, all drawn from a seed. The browser is the system's Chromium,
without a window or a GPU, driven by playwright; the server is that of `fencepost serve`, in this
process.
"""

import re
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import uvicorn

from fencepost.bench.serve import chromium_path
from fencepost.harness.serve.archive import ResultsArchive
from fencepost.history.failure import HarnessError, NotHereError
from fencepost.history.manifest import Manifest, Promises, RunState, write_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import FAULTS, OPERATIONS, TABLES
from fencepost.report.serve import timeline
from fencepost.report.serve.app import application
from fencepost.report.serve.timeline.opened import OpenRun

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_SECOND: Final = 1_000_000_000
_NODES: Final = ("controller-1", "controller-2", "controller-3", "broker-1", "broker-2", "broker-3")
_APIS: Final = (
    *("Fetch", "BrokerHeartbeat", "AlterPartition", "BrokerRegistration", "Vote", "CreateTopics"),
)
_WIDTH, _HEIGHT = 1500, 900
_MOVES: Final = """
async (frames) => {
  const timeline = window.fencepostTimeline;
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  timeline.look(0, timeline.end);
  await frame();
  await frame();
  timeline.drawn.length = 0;
  const between = [];
  let last = await frame();
  for (let at = 0; at < frames; at++) {
    // Zoom in and out around a moving centre, then pan back and forth at one zoom.
    const half = frames / 2;
    const centre = timeline.end * (0.3 + 0.4 * at / half);
    if (at < half) timeline.zoom(at < half / 2 ? 0.93 : 1 / 0.93, centre);
    else timeline.pan(at < half * 1.5 ? 0.02 : -0.02);
    const now = await frame();
    between.push(now - last);
    last = now;
  }
  return { draws: timeline.drawn.slice(), between };
}
"""
_MEMORY: Final = "() => performance.memory ? performance.memory.usedJSHeapSize : 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineFigures:
    """The figures of one page; times in ms. Draws are those of the script, frames the browser's."""

    events: int
    overview_s: float
    """The server's time for the counts of a run that it has not read yet."""
    events_s: float
    body_bytes: int
    first_paint_ms: float
    """From the request of the page to the end of its first draw, the run read already."""
    all_events_ms: float
    draw_p50_ms: float
    draw_p95_ms: float
    frame_p50_ms: float
    frame_p95_ms: float
    filter_ms: float
    heap_bytes: int
    """Of the tab's scripts, typed arrays included."""
    tab_bytes: int
    """The proportional set size of the tab's whole process: Chromium's own code and caches, too."""
    script_bytes: int

    def as_data(self) -> dict[str, object]:
        """Return the figures for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        mb = 1 << 20
        return [
            f"{self.events:,} events, scripts of {self.script_bytes / 1024:.0f} KiB",
            (
                f"server: counts {self.overview_s:.2f} s, events {self.events_s:.2f} s, "
                f"{self.body_bytes / mb:.1f} MiB"
            ),
            f"first paint {self.first_paint_ms:.0f} ms, all events {self.all_events_ms:.0f} ms",
            f"a draw: p50 {self.draw_p50_ms:.1f} ms, p95 {self.draw_p95_ms:.1f} ms",
            f"between frames: p50 {self.frame_p50_ms:.1f} ms, p95 {self.frame_p95_ms:.1f} ms",
            f"a filter: {self.filter_ms:.0f} ms",
            f"the tab holds {self.tab_bytes / mb:.0f} MiB, its scripts {self.heap_bytes / mb:.0f}",
        ]


def timeline_bench(run: RunDirectory | None, *, events: int, frames: int) -> TimelineFigures:
    """Measure a run, or one that is made; raise NotHereError if there is no browser."""
    chromium = chromium_path()
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415
    except ImportError:
        raise NotHereError("playwright is not installed: pip install playwright") from None
    if chromium is None:
        raise NotHereError("there is no chromium here: apt-get install chromium")
    with tempfile.TemporaryDirectory() as scratch:
        results = Path(scratch)
        if run is None:
            run = synthetic_run(results, events=events)
        else:
            results = run.root.parent.parent
        server = _server_figures(run)
        path = f"/runs/{run.root.parent.name}/{run.root.name}/timeline"
        with served(results) as address, sync_playwright() as playwright:
            flags = ["--no-sandbox", "--enable-precise-memory-info"]
            browser = playwright.chromium.launch(executable_path=chromium, args=flags)
            page = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT})
            # The counts are in the server's cache then, as they are on a second visit.
            page.request.get(f"{address}{path}/overview")
            page.goto(f"{address}{path}")
            page.wait_for_selector("[data-ready=events]", timeout=120_000)
            ready = page.evaluate("() => performance.now()")
            paint = page.evaluate(
                "() => performance.getEntriesByName('timeline-drawn')[0].startTime"
            )
            moved = page.evaluate(_MOVES, frames)
            filtered = page.evaluate(
                """() => { const timeline = window.fencepostTimeline;
                const begun = performance.now();
                timeline.parts.filter.value = 'Fetch node:broker-1'; timeline.filter();
                return performance.now() - begun; }"""
            )
            heap = page.evaluate(_MEMORY)
            tab = _tab_bytes(browser)
            browser.close()
    return TimelineFigures(
        **server,
        first_paint_ms=paint,
        all_events_ms=ready,
        draw_p50_ms=statistics.median(moved["draws"]),
        draw_p95_ms=_p95(moved["draws"]),
        frame_p50_ms=statistics.median(moved["between"]),
        frame_p95_ms=_p95(moved["between"]),
        filter_ms=filtered,
        heap_bytes=heap,
        tab_bytes=tab,
        script_bytes=_script_bytes(),
    )


def _server_figures(run: RunDirectory) -> dict[str, Any]:
    begun = time.perf_counter()
    opened = OpenRun(run)
    opened.overview()
    counted = time.perf_counter()
    body = opened.events(0, opened.reader.end_ns)
    return {
        "events": opened.event_count,
        "overview_s": counted - begun,
        "events_s": time.perf_counter() - counted,
        "body_bytes": len(body),
    }


def _tab_bytes(browser: "Browser") -> int:
    """Return the PSS of the largest renderer: a spare one has no page."""
    told = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return max(_pss_bytes(one["id"]) for one in told if one["type"] == "renderer")


def _pss_bytes(pid: int) -> int:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    (kib,) = re.findall(r"^Pss: +(\d+) kB", rollup, re.MULTILINE)
    return int(kib) << 10


def _p95(values: Sequence[float]) -> float:
    return float(np.percentile(values, 95))


def _script_bytes() -> int:
    static = Path(str(timeline.__file__)).parent / "static"
    return sum(path.stat().st_size for path in static.glob("*.js"))


@contextmanager
def served(results: Path) -> Iterator[str]:
    """Serve `results` on a free port of 127.0.0.1 in a thread; yield the address."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    app = application(ResultsArchive(results), results, port=port)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 30
    while not server.started:
        if time.monotonic() > deadline:
            raise HarnessError(f"the server on 127.0.0.1:{port} did not start within 30 s")
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


def synthetic_run(results: Path, *, events: int, seed: int = 1) -> RunDirectory:
    """Return a sealed run of so many events, 1 ms of time for each, written into `results`."""
    random = np.random.default_rng(seed)
    run = RunDirectory(results / "synthetic" / "20260101T000000Z")
    run.history.mkdir(parents=True)
    end_ns = events * _SECOND // 1000
    frames = events * 6 // 10
    pq.write_table(_wire(random, frames, end_ns), run.table_path("wire"))
    run.table_path("operations").mkdir()
    pq.write_table(
        _operations(random, events - frames, end_ns),
        run.table_path("operations") / "part-0.parquet",
    )
    pq.write_table(_faults(random, end_ns), run.table_path("faults"))
    write_manifest(
        run.manifest_path,
        Manifest(
            run_id="bench",
            state=RunState.CHECKED,
            scenario="synthetic",
            title=f"{events:,} events",
            seed=seed,
            started_at="2026-01-01T00:00:00+00:00",
            origin_ns=0,
            command="fencepost bench timeline",
            fencepost_version="0.1.0",
            node_ids={node: number for number, node in enumerate(_NODES)},
            promises=Promises(idempotent=True, acks="all", consume="assign"),
            end_ns=end_ns,
            recorded=("wire",),
        ),
    )
    return run


def _wire(random: np.random.Generator, count: int, end_ns: int) -> pa.Table:
    sent = np.sort(random.integers(0, end_ns, count))
    held = random.random(count) < 0.001  # noqa: PLR2004
    took = np.where(
        held, random.integers(_SECOND, 4 * _SECOND, count), random.integers(0, 9999, count)
    )
    asked = random.random(count) < 0.5  # noqa: PLR2004
    api = random.choice(len(_APIS), count, p=[0.55, 0.3, 0.06, 0.04, 0.02, 0.03])
    columns: dict[str, Any] = {
        "frame": np.arange(count),
        "item": np.zeros(count, dtype=np.int32),
        "connection": random.integers(0, 40, count),
        "source": np.array(_NODES)[3 + random.integers(0, 3, count)],
        "target": np.array(_NODES)[random.integers(0, 3, count)],
        "direction": np.where(asked, "request", "response"),
        "time_ns": sent,
        "forwarded_ns": sent + took,
        "action": np.where(held, "released", "forwarded"),
        "api": np.array(_APIS)[api],
        "api_key": api,
        "api_version": np.ones(count, dtype=np.int16),
        "correlation_id": np.arange(count),
        "size_bytes": random.integers(40, 400, count),
        "topic": np.full(count, "t"),
        "partition": random.integers(0, 12, count),
        "leader_epoch": np.arange(count) * 40 // count,
    }
    return _table("wire", columns, count)


def _operations(random: np.random.Generator, count: int, end_ns: int) -> pa.Table:
    called = np.sort(random.integers(0, end_ns, count))
    process = random.integers(0, 5, count)
    failed = random.random(count) < 0.002  # noqa: PLR2004
    columns = {
        "index": np.arange(count),
        "process": process,
        "f": np.where(process < 3, "send", "poll"),  # noqa: PLR2004
        "key": np.char.add("t-", random.integers(0, 12, count).astype(str)),
        "call_ns": called,
        "return_ns": called + random.integers(100_000, 20_000_000, count),
        "outcome": np.where(failed, "info", "ok"),
        "record_count": np.ones(count, dtype=np.int32),
    }
    return _table("operations", columns, count).select(OPERATIONS.names)


def _faults(random: np.random.Generator, end_ns: int) -> pa.Table:
    begins = np.sort(random.integers(0, end_ns, 200))
    rows = [
        {
            "index": index,
            "fault": ("kill", "pause", "partition")[index % 3],
            "targets": [_NODES[3 + index % 3]],
            "begin_ns": begin,
            "effect_ns": begin,
            "end_ns": begin + end_ns // 400,
        }
        for index, begin in enumerate(begins.tolist())
    ]
    return pa.Table.from_pylist(rows, schema=FAULTS)


def _table(name: str, columns: dict[str, Any], count: int) -> pa.Table:
    arrays = [
        pa.array(columns[one.name]).cast(one.type)
        if one.name in columns
        else pa.nulls(count, one.type)
        for one in TABLES[name]
    ]
    return pa.table(arrays, schema=TABLES[name])
