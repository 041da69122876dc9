"""The pages of the timeline, and the bodies that they ask for."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest
from fencepost.report.notation import counted
from fencepost.report.serve.pages import render
from fencepost.report.serve.security import file_inside
from fencepost.report.serve.timeline.compare import LEFT_OUT, first_difference
from fencepost.report.serve.timeline.opened import OpenRun, opened

_BINARY: Final = "application/octet-stream"
_Answer = Callable[[OpenRun, Request], Response]


def timeline_routes(results: Path) -> list[BaseRoute]:
    """Return the routes of the timelines of all runs in `results`, and of the comparison."""

    def of_run(answer: _Answer) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            names = request.path_params
            return _answered(
                lambda: answer(_run(results, names["scenario"], names["run"]), request)
            )

        return endpoint

    base = "/runs/{scenario}/{run}/timeline"
    static = StaticFiles(directory=Path(__file__).parent / "static")
    return [
        Mount("/static/timeline", app=static),
        Route(base, of_run(_page)),
        Route(f"{base}/overview", of_run(lambda run, _: _binary(run.overview()))),
        Route(f"{base}/events", of_run(_events)),
        Route(f"{base}/row", of_run(_row)),
        Route("/compare", lambda request: _answered(lambda: _compare(results, request))),
    ]


def _page(run: OpenRun, request: Request) -> Response:
    names = request.path_params
    return HTMLResponse(
        render(
            "timeline.html.j2",
            manifest=run.manifest,
            section="Runs",
            **_place(names),
            base=_base(names),
        )
    )


def _place(names: dict[str, str]) -> dict[str, str]:
    return {"scenario": names["scenario"], "run": names["run"]}


def _base(names: dict[str, str]) -> str:
    return f"/runs/{names['scenario']}/{names['run']}/timeline"


def _events(run: OpenRun, request: Request) -> Response:
    try:
        span = [int(float(request.query_params[name])) for name in ("from", "to")]
    except (KeyError, ValueError, OverflowError):
        return _refused("from and to are nanoseconds of the run")
    return _binary(run.events(span[0], span[1]))


def _row(run: OpenRun, request: Request) -> Response:
    kind, row = (request.query_params.get(name, "") for name in ("kind", "row"))
    if not row.isdecimal():
        return _refused("row is the number of a frame, an operation or a metadata offset")
    return JSONResponse(run.rows(kind, int(row)))


def _compare(results: Path, request: Request) -> Response:
    named = [request.query_params.get(name, "") for name in ("a", "b")]
    parts = [text.split("/") for text in named]
    if any(len(part) != len(("scenario", "run")) for part in parts):
        return _refused("a and b are runs, as scenario/run: /compare?a=storm/…&b=storm/…")
    runs = [_run(results, scenario, run) for scenario, run in parts]
    difference, count = first_difference(*runs)
    return HTMLResponse(
        render(
            "compare.html.j2",
            section="Runs",
            a=_side(named[0], runs[0].manifest),
            b=_side(named[1], runs[1].manifest),
            difference=difference,
            compared=counted(count, "event"),
            left_out=", ".join(LEFT_OUT),
        )
    )


def _side(name: str, manifest: Manifest) -> dict[str, object]:
    return {"name": name, "base": f"/runs/{name}/timeline", "manifest": manifest}


def _run(results: Path, scenario: str, run: str) -> OpenRun:
    """Return the run of these two names, each a plain folder of `results`; raise HarnessError."""
    found = file_inside(results, f"{scenario}/{run}/manifest.json")
    if found is None:
        raise HarnessError(f"no run {scenario}/{run} here")
    return opened(found.parent)


def _answered(answer: Callable[[], Response]) -> Response:
    try:
        return answer()
    except HarnessError as error:
        return PlainTextResponse(f"{error}\n", status_code=404)


def _refused(why: str) -> Response:
    return PlainTextResponse(f"{why}\n", status_code=400)


def _binary(body: bytes) -> Response:
    return Response(body, media_type=_BINARY, headers={"Cache-Control": "no-cache"})
