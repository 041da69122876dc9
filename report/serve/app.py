"""The web page as an application: its routes, and what each asks of the archive.

    /                        the newest of all          /nights, /nights/NAME[/TIME]
    /runs, /runs/SCENARIO/TIME                          /scenarios, /scenarios/NAME
    /files/…                 any file of the results, as it lies there, in a sandbox
    /runs/SCENARIO/TIME/timeline, /compare              see `report.serve.timeline`

A night's page carries a stamp of its files (ETag): while the night goes on, the page asks for
itself every second and takes over what changed. There is no open stream, so nothing keeps the
server from ending, and a restarted server is found again.
"""

import mimetypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from fencepost.history.run_directory import LATEST
from fencepost.report.serve.archive import Archive
from fencepost.report.serve.charts import interval_bar, night_bars
from fencepost.report.serve.pages import palette_css, render
from fencepost.report.serve.run_page import run_view
from fencepost.report.serve.security import STORED_POLICY, Guard, file_inside
from fencepost.report.serve.timeline.routes import timeline_routes

_STATIC: Final = Path(__file__).parent / "static"
_HTTP_PORT: Final = 80
"""A browser leaves this one out of the Host header."""
_NEWEST: Final = 10
_LISTED_MAX: Final = 1000
_TEXTS: Final = frozenset(
    {".json", ".yaml", ".yml", ".log", ".txt", ".properties", ".conf", ".edn"}
)
"""Shown as plain text; the browser saves what is neither this nor a page."""


def application(archive: Archive, results: Path, *, port: int) -> ASGIApp:
    """Return the page over `results`, for a server on this port of 127.0.0.1."""
    site = _Site(archive, results)
    routes: list[BaseRoute] = [
        Route("/", site.overview),
        Route("/nights", site.nights),
        Route("/nights/{name}", site.trend),
        Route("/nights/{name}/{time}", site.night),
        Route("/scenarios", site.scenarios),
        Route("/scenarios/{name}", site.scenario),
        Route("/runs", site.runs),
        *site.timeline_routes,
        Route("/runs/{scenario}/{time}", site.run),
        Route("/files/{path:path}", site.file),
        Route("/favicon.ico", _icon),
        Route("/static/palette.css", _palette),
        Route("/static/{name}", _static),
    ]
    failures: dict[Any, Callable[..., Any]] = {HTTPException: _failed, Exception: _broken}
    app = Starlette(routes=routes, exception_handlers=failures)
    app.router.redirect_slashes = False
    names = ("127.0.0.1", "localhost")
    hosts = [f"{name}:{port}" for name in names]
    if port == _HTTP_PORT:
        hosts += names
    return Guard(app, hosts=hosts)


class _Site:
    """The pages. Each is a plain function of a request, run in a thread."""

    def __init__(self, archive: Archive, results: Path) -> None:
        self._archive = archive
        self._results = results
        self.timeline_routes: list[BaseRoute] = list(timeline_routes(results))

    def overview(self, request: Request) -> Response:
        """The newest nights with what the gate says, the newest runs, and the scenarios."""
        del request
        nights = self._archive.nights()
        runs = self._archive.runs()
        return _page(
            "overview.html.j2",
            section="Overview",
            results=str(self._results),
            nights=[self._archive.gated(night) for night in nights[:_NEWEST]],
            night_count=len(nights),
            runs=runs[:_NEWEST],
            run_count=len(runs),
            scenarios=_by_scenario(runs),
        )

    def nights(self, request: Request) -> Response:
        """All nights."""
        del request
        return _page("nights.html.j2", section="Nights", nights=self._archive.nights())

    def trend(self, request: Request) -> Response:
        """The nights of one name, and their findings through time."""
        name = request.path_params["name"]
        nights, findings = self._archive.trend(name)
        if not nights:
            raise HTTPException(404, f"there is no night {name}")
        return _page(
            "trend.html.j2",
            section="Nights",
            name=name,
            nights=nights,
            findings=findings,
            chart=night_bars(nights),
        )

    def night(self, request: Request) -> Response:
        """One night, as far as it came."""
        name, time = request.path_params["name"], request.path_params["time"]
        stamp = f'"{self._archive.night_stamp(name, time)}"'
        if request.headers.get("if-none-match") == stamp:
            return Response(status_code=304, headers={"ETag": stamp})
        found = self._archive.night(name, time)
        if found is None:
            raise HTTPException(404, f"there is no night {name}/{time}")
        return _page("night.html.j2", section="Nights", night=found, headers={"ETag": stamp})

    def scenarios(self, request: Request) -> Response:
        """The scenarios that have runs."""
        del request
        found = _by_scenario(self._archive.runs())
        return _page("scenarios.html.j2", section="Scenarios", scenarios=found)

    def scenario(self, request: Request) -> Response:
        """One scenario: its rates by release, and its runs."""
        name = request.path_params["name"]
        runs = [run for run in self._archive.runs() if run.scenario == name]
        rates = self._archive.rates(name)
        reproductions = self._archive.reproductions(name)
        if not (runs or rates or reproductions):
            raise HTTPException(404, f"there is no run of {name}")
        return _page(
            "scenario.html.j2",
            section="Scenarios",
            name=name,
            runs=runs[:_LISTED_MAX],
            run_count=len(runs),
            rates=[(rate, interval_bar(rate)) for rate in rates],
            reproductions=reproductions,
        )

    def runs(self, request: Request) -> Response:
        """All runs, or those of one verdict."""
        verdict = request.query_params.get("verdict", "")
        runs = self._archive.runs()
        counts: dict[str, int] = {}
        for run in runs:
            counts[run.verdict] = counts.get(run.verdict, 0) + 1
        chosen = [run for run in runs if verdict in ("", run.verdict)]
        return _page(
            "runs.html.j2",
            section="Runs",
            runs=chosen[:_LISTED_MAX],
            run_count=len(chosen),
            all_count=len(runs),
            verdict=verdict,
            counts=counts,
        )

    def run(self, request: Request) -> Response:
        """One run in any state."""
        scenario, time = request.path_params["scenario"], request.path_params["time"]
        of_scenario = [run for run in self._archive.runs() if run.scenario == scenario]
        if time == LATEST and of_scenario:
            return RedirectResponse(f"/runs/{of_scenario[0].name}", 307)
        place = next((i for i, run in enumerate(of_scenario) if run.time == time), None)
        if place is None:
            raise HTTPException(404, f"there is no run {scenario}/{time}")
        earlier = of_scenario[place + 1 : place + 2]
        return _page(
            "run.html.j2",
            section="Runs",
            run=of_scenario[place],
            before=earlier[0] if earlier else None,
            later=of_scenario[place - 1] if place else None,
            view=run_view(self._results / scenario / time),
            has_timeline=bool(self.timeline_routes),
        )

    def file(self, request: Request) -> Response:
        """A file of the results; nothing in it is ours to run."""
        path = file_inside(self._results, request.path_params["path"])
        if path is None:
            raise HTTPException(404, "there is no such file in the results")
        kind, saved = _kind_of(path)
        return FileResponse(
            path,
            media_type=kind,
            filename=path.name if saved else None,
            headers={"Content-Security-Policy": STORED_POLICY},
        )


def _kind_of(path: Path) -> tuple[str, bool]:
    """Return the media type of a stored file, and whether it is to be saved, not shown."""
    if path.suffix == ".html":
        return "text/html; charset=utf-8", False
    if path.suffix in _TEXTS:
        return "text/plain; charset=utf-8", False
    return "application/octet-stream", True


def _by_scenario(runs: Any) -> list[tuple[str, dict[str, int], Any]]:
    """Return each scenario with the number of its runs by verdict, and its newest run."""
    found: dict[str, tuple[dict[str, int], Any]] = {}
    for run in runs:
        counts, _ = found.setdefault(run.scenario, ({}, run))
        counts[run.verdict] = counts.get(run.verdict, 0) + 1
    return [(name, *found[name]) for name in sorted(found)]


def _page(
    template: str, *, status: int = 200, headers: dict[str, str] | None = None, **values: object
) -> HTMLResponse:
    return HTMLResponse(render(template, **values), status_code=status, headers=headers)


def _palette(request: Request) -> Response:
    del request
    return Response(palette_css(), media_type="text/css")


def _icon(request: Request) -> Response:
    """Answer with the icon, which a browser asks for beside a stored page."""
    del request
    return FileResponse(_STATIC / "icon.svg")


def _static(request: Request) -> Response:
    path = file_inside(_STATIC, request.path_params["name"])
    if path is None:
        raise HTTPException(404, "there is no such file")
    return FileResponse(path, media_type=mimetypes.guess_type(path.name)[0])


def _failed(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, HTTPException)
    return _page("error.html.j2", status=error.status_code, words=error.detail)


def _broken(request: Request, error: Exception) -> Response:
    words = f"a mistake of Fencepost's own: {type(error).__name__}: {error}"
    return _page("error.html.j2", status=500, words=f"{request.url.path}: {words}")
