"""A scene as SVG: lines of the nodes, arrows between them, decisions left, steps of the play right.

Colours are the page's variables, so the picture changes with the reader's preference. Every event
is a group with a title (for the pointer), a name of its own (`frame-17`, `metadata-36`) that other
parts of the page link to, and a place in the order that the arrow keys follow.

A frame that a rule kept goes to a post beside its receiver, waits there along a dashed line, and
arrives from the post when it is let go. So nothing slants across what happened meanwhile.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from fencepost.report.arrows import Arrow, ArrowFate
from fencepost.report.faults import FaultLane, lanes_of
from fencepost.report.metadata_notes import DecisionNote, NoteKind
from fencepost.report.notation import length, moment, printable, shortened
from fencepost.report.palette import FaultLook
from fencepost.report.performed import PerformedStep
from fencepost.report.sequence import SequenceScene
from fencepost.report.sequence_layout import (
    HEAD,
    NOTES_WIDTH,
    TIME_RIGHT,
    Arrival,
    Event,
    SceneLayout,
    SceneRow,
    layout_of,
)
from fencepost.report.svg import (
    BOLD_CHARACTER,
    CHARACTER,
    cross,
    event_group,
    head,
    line,
    pill,
    text,
)

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
_POST: Final = 26.0
_POST_STEP: Final = 9.0
_LOST_AT: Final = 0.6
_BEYOND: Final = 24.0
"""A label may reach so far over the last line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ArrowPainter:
    """Draws the arrows of one picture."""

    layout: SceneLayout
    posts: Mapping[int, float]
    """The x at which each waiting frame is drawn, by its number."""

    @staticmethod
    def of(arrows: Sequence[Arrow], layout: SceneLayout) -> "_ArrowPainter":
        """Return a painter, its posts beside one another where several frames wait for one node."""
        lines = layout.columns.lines
        posts: dict[int, float] = {}
        waiting: list[tuple[float, int, str]] = []
        for arrow in arrows:
            if arrow.fate not in (ArrowFate.LATE, ArrowFate.WAITING):
                continue
            taken = {
                slot
                for until, slot, node in waiting
                if until > arrow.sent_ns and node == arrow.receiver
            }
            slot = next(number for number in range(len(taken) + 1) if number not in taken)
            until = float("inf") if arrow.arrived_ns is None else float(arrow.arrived_ns)
            waiting.append((until, slot, arrow.receiver))
            side = -1 if lines[arrow.sender] < lines[arrow.receiver] else 1
            posts[arrow.frame] = lines[arrow.receiver] + side * (_POST + slot * _POST_STEP)
        return _ArrowPainter(layout=layout, posts=posts)

    def wait(self, arrow: Arrow) -> Markup:
        """Draw the wait of a frame, from when it was sent to when it was let go."""
        bottom = self.layout.height - HEAD
        if arrow.fate is ArrowFate.LATE and arrow.arrived_ns is not None:
            bottom = self.layout.row_of(Arrival(arrow=arrow, time_ns=arrow.arrived_ns)).y
        x = self.posts[arrow.frame]
        return line("held", x1=x, y1=self.layout.row_of(arrow).y, x2=x, y2=bottom)

    def sent(self, arrow: Arrow, y: float) -> Markup:
        """Draw the frame as it was sent; if nothing stopped it, as it arrived too."""
        start, end = self._ends(arrow)
        rightwards = end > start
        reach = self.posts.get(arrow.frame, end)
        lost = arrow.fate is ArrowFate.LOST
        if lost:
            reach = start + _LOST_AT * (end - start)
        arrives = reach == end and not lost
        shaft = reach - (8 if rightwards else -8) if arrives else reach
        parts = [line("shaft", x1=start, y1=y, x2=shaft, y2=y)]
        if arrives:
            parts.append(head(end, y, rightwards=rightwards))
        if lost:
            parts.append(cross(reach, y))
        parts.append(self._label(arrow, y))
        if arrow.rule is not None:
            parts.append(pill(_fate_words(arrow), x=reach, y=y + 13))
        # Other parts of the page link to any of the frames that this arrow stands for.
        anchors = (Markup('<g id="frame-{n}"/>').format(n=n) for n in arrow.frames[1:])
        return event_group(
            f"arrow {_look(arrow)}",
            (*arrow.details, *_again(arrow)),
            Markup("").join([*anchors, *parts]),
            name=f"frame-{arrow.frame}",
        )

    def arrived(self, arrival: Arrival, y: float) -> Markup:
        """Draw the end of a frame that had waited."""
        arrow = arrival.arrow
        _, end = self._ends(arrow)
        post = self.posts[arrow.frame]
        rightwards = end > post
        gone = arrow.action == "undeliverable"
        late = length(arrival.time_ns - arrow.sent_ns)
        words = f"{arrow.api} {'finds no receiver' if gone else 'arrives'}, {late} late"
        tip = end - (8 if rightwards else -8)
        parts = [
            line("shaft", x1=post, y1=y, x2=tip, y2=y),
            cross(tip, y) if gone else head(end, y, rightwards=rightwards),
            text(
                "words",
                words,
                x=post - 8 if rightwards else post + 8,
                y=y + 4,
                anchor="end" if rightwards else "start",
            ),
        ]
        return event_group(
            f"arrow {_look(arrow)}",
            (f"{words}: {arrow.words}", *arrow.details),
            Markup("").join(parts),
            name=f"frame-{arrow.frame}-arrives",
        )

    def _ends(self, arrow: Arrow) -> tuple[float, float]:
        lines = self.layout.columns.lines
        return lines[arrow.sender], lines[arrow.receiver]

    def _label(self, arrow: Arrow, y: float) -> Markup:
        """Draw the label above the arrow, in its middle; over its ends where it is longer."""
        left, right = sorted(self._ends(arrow))
        lines = self.layout.columns.lines.values()
        first, last = min(lines), max(lines)
        answer = "" if arrow.answer is None else f" → {arrow.answer}"
        again = f", {arrow.repeats + 1} times" if arrow.repeats else ""
        # To either side the label may go as far as the lines do: beyond stand other columns.
        onwards = last + _BEYOND - left - 8 >= right - first
        room = max(last + _BEYOND - left - 8, right - first) - len(answer) * BOLD_CHARACTER
        room -= len(again) * CHARACTER
        words = shortened(arrow.words, length_max=max(12, int(room / CHARACTER)))
        width = (len(words) + len(again)) * CHARACTER + len(answer) * BOLD_CHARACTER
        x, anchor = (left + right) / 2, "middle"
        if width > right - left - 12:
            x, anchor = (left + 8, "start") if onwards else (right - 8, "end")
        parts = (
            ("", words),
            ("back", answer),
            ("again", again),
        )
        spans = Markup("").join(
            Markup('<tspan class="{kind}">{part}</tspan>').format(kind=kind, part=part)
            for kind, part in parts
            if part
        )
        return Markup(
            '<text class="words" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{spans}</text>'
        ).format(x=x, y=y - 6, anchor=anchor, spans=spans)


def draw_scene(
    scene: SequenceScene, *, fault_colours: Mapping[str, str], looks: Mapping[str, FaultLook]
) -> Markup:
    """Return the picture; `fault_colours` has the CSS variable of each kind of fault."""
    layout = layout_of(scene)
    painter = _ArrowPainter.of(scene.arrows, layout)
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


def _event(event: Event, y: float, layout: SceneLayout, painter: _ArrowPainter) -> Markup:
    match event:
        case Arrow():
            return painter.sent(event, y)
        case Arrival():
            return painter.arrived(event, y)
        case DecisionNote():
            return _note(event, y, layout)
        case PerformedStep():
            return _step(event, y, layout)


def _names(layout: SceneLayout) -> Iterator[Markup]:
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


def _lines(layout: SceneLayout) -> Iterator[Markup]:
    for x in layout.columns.lines.values():
        yield line("life", x1=x, y1=HEAD - 11, x2=x, y2=layout.height - 33)


def _bars(
    scene: SequenceScene,
    layout: SceneLayout,
    fault_colours: Mapping[str, str],
    looks: Mapping[str, FaultLook],
) -> Iterator[Markup]:
    for lane in lanes_of(scene.spans, run_end_ns=scene.window.to_ns):
        if lane.target in layout.columns.lines:
            tone = fault_colours.get(lane.span.kind, "--quiet")
            look = looks.get(lane.span.kind, FaultLook())
            word = look.state or lane.span.kind
            yield _bar(lane, layout, word, end_ns=scene.window.to_ns, tone=tone)


def _bar(lane: FaultLane, layout: SceneLayout, word: str, *, end_ns: int, tone: str) -> Markup:
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


def _clock(row: SceneRow) -> Iterator[Markup]:
    seconds = f"{row.time_ns / 1e9:,.3f}"
    yield text("clock", seconds, x=TIME_RIGHT, y=row.y + 4, anchor="end")
    if row.pause_ns:
        words = f"{length(row.pause_ns)} later"
        yield text("pause", words, x=TIME_RIGHT, y=row.pause_y + 4, anchor="end")


def _note(note: DecisionNote, y: float, layout: SceneLayout) -> Markup:
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


def _step(step: PerformedStep, y: float, layout: SceneLayout) -> Markup:
    x = layout.columns.steps
    words = shortened(step.text, length_max=int((layout.columns.width - x - 12) / BOLD_CHARACTER))
    body = Markup('<path class="tick" d="M{x:.1f} {y:.1f}l7 -4v8z"/>').format(x=x, y=y)
    return event_group(
        "step patient" if step.word in _PATIENT else "step",
        (f"{step.text}, from {step.time_ns / 1e9:,.3f} s on", "a step of the play"),
        body + text("words", words, x=x + 12, y=y + 4),
    )


def _fate_words(arrow: Arrow) -> str:
    if arrow.action == "undeliverable" and arrow.fate is ArrowFate.LOST:
        return f"held by {arrow.rule}, then undeliverable"
    verb = "held" if arrow.fate in (ArrowFate.LATE, ArrowFate.WAITING) else arrow.action
    return f"{verb} by {arrow.rule}"


def _again(arrow: Arrow) -> Iterator[str]:
    if arrow.repeats:
        yield f"{arrow.repeats} times more, until {moment(arrow.until_ns)}"


def _look(arrow: Arrow) -> str:
    look = "answer" if arrow.is_answer else "said"
    if arrow.disturbed or arrow.refused:
        look = "disturbed" if arrow.disturbed else "refused"
    return f"{look} proven" if arrow.proven else look
