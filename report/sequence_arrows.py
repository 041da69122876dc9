"""The arrows of a sequence picture: sent here, arrived there, and where each waited or was lost.

A frame that a rule kept goes to a post beside its receiver, waits there along a dashed line, and
arrives from the post when it is let go. So nothing slants across what happened meanwhile.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from report.arrows import Arrow, ArrowFate
from report.notation import length, moment, shortened
from report.sequence_layout import HEAD, Arrival, Layout
from report.svg import BOLD_CHARACTER, CHARACTER, cross, event_group, head, line, pill, text

__all__ = ["ArrowPainter"]

_POST: Final = 26.0
_POST_STEP: Final = 9.0
_LOST_AT: Final = 0.6
_BEYOND: Final = 24.0
"""A label may reach so far over the last line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowPainter:
    """Draws the arrows of one picture."""

    layout: Layout
    posts: Mapping[int, float]
    """The x at which each waiting frame is drawn, by its number."""

    @staticmethod
    def of(arrows: Sequence[Arrow], layout: Layout) -> "ArrowPainter":
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
        return ArrowPainter(layout=layout, posts=posts)

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
