"""A scene as SVG: lines of the nodes, arrows between them, decisions left, steps of the play right.

Colours are the page's variables, so the picture changes with the reader's preference. Every event
is a group with a title (for the pointer), a name of its own (`frame-17`, `metadata-36`) that other
parts of the page link to, and a place in the order that the arrow keys follow.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from markupsafe import Markup

from report.arrows import Arrow, ArrowFate
from report.faults import FaultLane, lanes_of
from report.metadata_notes import Note, NoteKind
from report.notation import length, printable, shortened
from report.palette import FaultLook
from report.performed import PerformedStep
from report.sequence import SequenceScene
from report.sequence_arrows import ArrowPainter
from report.sequence_layout import (
    HEAD,
    NOTES_WIDTH,
    TIME_RIGHT,
    Arrival,
    Event,
    Layout,
    Row,
    layout_of,
)
from report.svg import BOLD_CHARACTER, CHARACTER, event_group, line, text

__all__ = ["draw_scene"]

_LANE: Final = 9.0
_TONES: Final = {
    NoteKind.ISR: "--records",
    NoteKind.LEADER: "--p99",
    NoteKind.QUORUM: "--p99",
    NoteKind.REGISTRATION: "--ok",
    NoteKind.FENCING: "--info",
    NoteKind.TOPIC: "--max",
}
_PATIENT: Final = ("await", "wait", "watch")


def draw_scene(
    scene: SequenceScene, *, fault_colours: Mapping[str, str], looks: Mapping[str, FaultLook]
) -> Markup:
    """Return the picture; `fault_colours` has the CSS variable of each kind of fault."""
    layout = layout_of(scene)
    painter = ArrowPainter.of(scene.arrows, layout)
    parts = [
        *_lines(layout),
        *_bars(scene, layout, fault_colours, looks),
        *(part for row in layout.rows for part in _clock(row)),
        *(painter.wait(a) for a in scene.arrows if a.fate in (ArrowFate.LATE, ArrowFate.WAITING)),
        *(_event(event, row.y, layout, painter) for row in layout.rows for event in row.events),
        *_names(layout),
    ]
    return Markup(
        '<svg class="sequence" role="group" aria-label="What the nodes said to each other" '
        'xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" '
        'viewBox="0 0 {w:.0f} {h:.0f}">\n{parts}\n</svg>'
    ).format(w=layout.columns.width, h=layout.height, parts=Markup("\n").join(parts))


def _event(event: Event, y: float, layout: Layout, painter: ArrowPainter) -> Markup:
    match event:
        case Arrow():
            return painter.sent(event, y)
        case Arrival():
            return painter.arrived(event, y)
        case Note():
            return _note(event, y, layout)
        case PerformedStep():
            return _step(event, y, layout)


def _names(layout: Layout) -> Iterator[Markup]:
    for y in (HEAD - 22, *layout.names_at, layout.height - 22):
        for node, x in layout.columns.lines.items():
            width = len(node) * 7.0 + 18
            yield Markup(
                '<g class="name"><rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" '
                'height="22" rx="6"/>{name}</g>'
            ).format(
                left=x - width / 2,
                top=y - 11,
                width=width,
                name=text("node", node, x=x, y=y + 4.5, anchor="middle"),
            )


def _lines(layout: Layout) -> Iterator[Markup]:
    for x in layout.columns.lines.values():
        yield line("life", x1=x, y1=HEAD - 11, x2=x, y2=layout.height - 33)


def _bars(
    scene: SequenceScene,
    layout: Layout,
    fault_colours: Mapping[str, str],
    looks: Mapping[str, FaultLook],
) -> Iterator[Markup]:
    for lane in lanes_of(scene.spans, run_end_ns=scene.window.to_ns):
        if lane.target in layout.columns.lines:
            tone = fault_colours.get(lane.span.kind, "--quiet")
            look = looks.get(lane.span.kind, FaultLook())
            word = look.state or lane.span.kind
            yield _bar(lane, layout, word, end_ns=scene.window.to_ns, tone=tone)


def _bar(lane: FaultLane, layout: Layout, word: str, *, end_ns: int, tone: str) -> Markup:
    """Draw a fault on its node's line, from its effect to its heal; overlapping ones abreast."""
    span = lane.span
    top = layout.y(span.begin_ns if span.effect_ns is None else span.effect_ns)
    height = max(6.0, layout.y(span.until_ns(end_ns)) - top)
    x = layout.columns.lines[lane.target] + (lane.row - lane.rows / 2) * _LANE
    state = Markup("")
    # Below the names of the nodes, where they are repeated across the bar.
    start = next((y + 18 for y in layout.names_at if top - 24 < y < top + 60), top + 6)
    if height > start - top + len(word) * CHARACTER + 6:
        state = Markup(
            '<text class="state" transform="translate({x:.1f} {y:.1f}) rotate(-90)" '
            'text-anchor="end">{word}</text>'
        ).format(x=x - 4 if lane.row == 0 else x + _LANE + 11, y=start, word=printable(word))
    healed = "not seen to heal" if span.end_ns is None else span.heal_evidence
    return Markup(
        '<g class="fault" style="--tone: var({tone})"><title>{title}</title>'
        '<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="2"/>{state}</g>'
    ).format(
        tone=tone,
        title=printable(f"{span.label}\n{span.evidence}\n{healed}"),
        x=x + 1,
        y=top,
        w=_LANE - 2,
        h=height,
        state=state,
    )


def _clock(row: Row) -> Iterator[Markup]:
    seconds = f"{row.time_ns / 1e9:,.3f}"
    yield text("clock", seconds, x=TIME_RIGHT, y=row.y + 4, anchor="end")
    if row.pause_ns:
        words = f"{length(row.pause_ns)} later"
        yield text("pause", words, x=TIME_RIGHT, y=row.pause_y + 4, anchor="end")


def _note(note: Note, y: float, layout: Layout) -> Markup:
    lines, left = layout.columns.lines, layout.columns.notes
    x = lines.get(note.by or "", next(iter(lines.values()), left + NOTES_WIDTH))
    words = shortened(note.text, length_max=int(NOTES_WIDTH / CHARACTER))
    # Next to the line, where no head of an arrow from the right is drawn.
    dot = x - 7
    body = (
        line("thread", x1=left + len(words) * CHARACTER + 10, y1=y, x2=dot, y2=y)
        + Markup('<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>').format(x=dot, y=y)
        + text("offset", str(note.metadata_offset), x=left - 8, y=y + 4, anchor="end")
        + text("decision", words, x=left, y=y + 4)
    )
    return event_group(
        "decided",
        (f"{note.text}, at {note.time_ns / 1e9:,.3f} s", *note.details),
        body,
        name=f"metadata-{note.metadata_offset}",
        tone=_TONES[note.kind],
    )


def _step(step: PerformedStep, y: float, layout: Layout) -> Markup:
    x = layout.columns.steps
    words = shortened(step.text, length_max=int((layout.columns.width - x - 12) / BOLD_CHARACTER))
    body = Markup('<path class="tick" d="M{x:.1f} {y:.1f}l7 -4v8z"/>').format(x=x, y=y)
    return event_group(
        "step patient" if step.word in _PATIENT else "step",
        (f"{step.text}, from {step.time_ns / 1e9:,.3f} s on", "a step of the play"),
        body + text("words", words, x=x + 12, y=y + 4),
    )
