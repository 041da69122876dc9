"""One page a run: what happened, whether it was right, and how to see it for oneself.

The page is one file without any reference to a network: styles, scripts and plots are inside, and
its content security policy names the digests of its own scripts, so that nothing that a server, a
scenario or a file name says can ever run. It opens from a disk as well as from a server. It is
written for a run in any state; what is missing is said in words.
"""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from bokeh.resources import Resources
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from fencepost.checkers.service_level import LatencyLevel
from fencepost.history.atomic import write_atomically
from fencepost.history.run_directory import RunDirectory
from fencepost.report import notation, tables
from fencepost.report.canvas import Canvas
from fencepost.report.forensics import Stories, replica_epochs, stories_at
from fencepost.report.found import proofs_by_finding
from fencepost.report.head import head_of
from fencepost.report.headline import Standing
from fencepost.report.in_force import SettingRow, in_force
from fencepost.report.kinds import kind_rows
from fencepost.report.palette import ROLES, FaultLook, Shade, fault_colours, source_colours
from fencepost.report.plots import PlotSet, plots_of
from fencepost.report.proofs import GroupOfProofs, proofs_of
from fencepost.report.reading import Attempts, Reading, read_run
from fencepost.report.samples import SampleSeries, series_of
from fencepost.report.sequence import Window, scene_of
from fencepost.report.sequence_svg import draw_scene
from fencepost.report.service import service_rows
from fencepost.report.tables import provenance_of

_METRICS: Final = ("cpu_fraction", "rss_bytes")


def write_page(
    run: RunDirectory,
    *,
    window: Window | None = None,
    looks: Mapping[str, FaultLook] = MappingProxyType({}),
) -> Path:
    """Write `report.html` of a run in any state, and say where it lies.

    `window`: the part of the run in the sequence picture. `looks`: of kinds of fault, by name.
    Raises HarnessError if the file cannot be written.
    """
    reading = read_run(run)
    write_atomically(run.report_path, _render(run, reading, window, looks).encode())
    return run.report_path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Colours:
    """The CSS variables of kinds of fault and of sources."""

    shades: Mapping[str, Shade]
    faults: Mapping[str, str]
    sources: Mapping[str, str]


def _render(
    run: RunDirectory, reading: Reading, window: Window | None, looks: Mapping[str, FaultLook]
) -> str:
    series = _series(reading)
    colours = _colours(reading, series, looks)
    attempts = Attempts()
    # If the operations or records cannot be read, the sentences of the anomalies still can.
    bare = replace(reading, operation_files=(), record_files=(), model_files=())
    proofs = attempts.read(lambda: proofs_of(reading), None) or proofs_of(bare)
    plots = _plots(reading, series, colours, proofs) if _has_history(reading) else None
    settings: tuple[SettingRow, ...] = ()
    settings = attempts.read(lambda: in_force(run, reading.manifest), settings)
    stories = attempts.read(lambda: stories_at(run.forensics_path), Stories())
    named = {number for g in proofs for proof in g.proofs for number in proof.anomaly.frames}
    scene = scene_of(run, reading, window=window, proven=named | stories.frames)
    scripts = _scripts(plotted=plots is not None)
    head = head_of(run, reading)
    template = _environment().get_template("page.html.j2")
    return template.render(
        style=Markup(_asset("page.css")),  # noqa: S704  # our own
        scripts=[Markup(script) for script in scripts],  # noqa: S704  # our own and Bokeh's
        script_digests=[_digest(script) for script in scripts],
        shades=colours.shades,
        fault_colours=colours.faults,
        icon=_icon(head.headline.standing),
        head=head,
        troubles=list(dict.fromkeys((*reading.troubles, *attempts.troubles))),
        proofs=proofs,
        found=proofs_by_finding(reading.verdict.findings if reading.verdict else (), proofs),
        checks=tables.checks_of(reading),
        drawings=plots.drawings if plots else (),
        stories=stories,
        scene=scene,
        sequence=None
        if scene.is_empty
        else draw_scene(scene, fault_colours=colours.faults, looks=looks),
        plots_json=_script_safe(plots.document_json) if plots else None,
        functions=reading.functions,
        kinds=kind_rows(reading.verdict, reading.manifest),
        faults=tables.faults_of(reading),
        windows=tables.windows_of(reading),
        operations=tables.operations_of(reading),
        is_open_history=bool(reading.manifest and reading.manifest.model),
        errors=tables.errors_of(reading),
        in_force=settings,
        latencies=_latencies(reading),
        provenance=provenance_of(run, reading),
    )


def _latencies(reading: Reading) -> list[tuple[str, str, LatencyLevel]]:
    level = reading.verdict.service_level if reading.verdict else None
    return list(service_rows(level)) if level else []


def _series(reading: Reading) -> tuple[SampleSeries, ...]:
    bins = reading.timeline.bins
    found = (series_of(reading.samples, metric=metric, bins=bins) for metric in _METRICS)
    return tuple(series for series in found if series.by_source)


def _scripts(*, plotted: bool) -> list[str]:
    """Return the page's scripts; of Bokeh the core alone, for its widgets would double the page."""
    bokeh = Resources(mode="inline", components=["bokeh"], log_level="warn")
    return [*(bokeh.js_raw if plotted else ()), _asset("page.js")]


@cache
def _environment() -> Environment:
    """Return the templates, compiled once a process."""
    environment = Environment(
        loader=PackageLoader("fencepost.report", package_path=""),
        autoescape=True,
        finalize=_inert,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        coded=_coded,
        duration=notation.length,
        epochs=replica_epochs,
        integer=notation.integer,
        listed=notation.listed,
        moment=notation.moment,
        size=notation.size,
    )
    return environment


def _inert(value: object) -> object:
    """Return a value of a run so that it is shown, not acted on. Markup is our own."""
    return (
        notation.printable(value) if type(value) is not Markup and isinstance(value, str) else value
    )


def _coded(text: str) -> Markup:
    """Return the text escaped, with the parts in backticks as code."""
    parts = [escape(notation.printable(part)) for part in text.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part
        for place, part in enumerate(parts)
    )


def _has_history(reading: Reading) -> bool:
    return bool(reading.operation_files or reading.spans or len(reading.samples))


def _colours(
    reading: Reading, series: tuple[SampleSeries, ...], looks: Mapping[str, FaultLook]
) -> _Colours:
    faults = fault_colours((span.kind for span in reading.spans), looks)
    sources = source_colours(source for one in series for source in one.by_source)
    # A name that came from a run never becomes part of a style: variables are numbered.
    fault_names = {kind: f"--fault-{place}" for place, kind in enumerate(faults)}
    source_names = {source: f"--source-{place}" for place, source in enumerate(sources)}
    return _Colours(
        shades={
            **{f"--{role}": shade for role, shade in ROLES.items()},
            **{fault_names[kind]: shade for kind, shade in faults.items()},
            **{source_names[source]: shade for source, shade in sources.items()},
        },
        faults=fault_names,
        sources=source_names,
    )


def _plots(
    reading: Reading,
    series: tuple[SampleSeries, ...],
    colours: _Colours,
    proofs: tuple[GroupOfProofs, ...],
) -> PlotSet:
    canvas = Canvas(
        bins=reading.timeline.bins,
        spans=reading.spans,
        end_ns=reading.end_ns,
        healed_ns=reading.manifest.healed_ns if reading.manifest else None,
        colours=colours.faults,
    )
    return plots_of(
        canvas,
        reading.timeline if reading.has_counts else None,
        windows=reading.windows or (),
        samples=series,
        marks=[proof.mark for group in proofs for proof in group.proofs if proof.mark],
        source_colours=colours.sources,
    )


def _icon(standing: Standing) -> str:
    """Return a dot in the colour of the verdict, for the tab."""
    role = {Standing.FAILED: "invalid", Standing.UNCHECKED: "quiet"}.get(standing, standing.value)
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
        f'<circle cx="8" cy="8" r="7" fill="{ROLES[role].light}"/></svg>'
    )
    return "data:image/svg+xml," + quote(drawing)


def _asset(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    """Return the digest by which a content security policy names an inline script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _script_safe(json: str) -> Markup:
    """Return JSON that no HTML parser can mistake for the end of its script element."""
    return Markup(json.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e"))  # noqa: S704
