"""Small shapes that a sequence picture is made of, as escaped markup."""

from collections.abc import Iterable
from typing import Final

from markupsafe import Markup

from fencepost.report.notation import printable

CHARACTER: Final = 6.4
"""The average width of a character of 12 px text; labels are cut by it."""

BOLD_CHARACTER: Final = 7.1


def text(kind: str, words: str, *, x: float, y: float, anchor: str = "start") -> Markup:
    """Return one line of text. Text of a run is shown, not acted on."""
    return Markup(
        '<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'
    ).format(kind=kind, x=x, y=y, anchor=anchor, words=printable(words))


def line(kind: str, *, x1: float, y1: float, x2: float, y2: float) -> Markup:
    """Return a straight line."""
    return Markup(
        '<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
    ).format(kind=kind, x1=x1, y1=y1, x2=x2, y2=y2)


def head(x: float, y: float, *, rightwards: bool) -> Markup:
    """Return the head of a level arrow whose tip is at (x, y)."""
    return Markup('<path class="head" d="M{x:.1f} {y:.1f}l{back} -4.5v9z"/>').format(
        x=x, y=y, back=-9 if rightwards else 9
    )


def cross(x: float, y: float) -> Markup:
    """Return a cross where something ended that was meant to go on."""
    return Markup('<path class="cross" d="M{x:.1f} {y:.1f}m-5 -5l10 10m0 -10l-10 10"/>').format(
        x=x, y=y
    )


def pill(words: str, *, x: float, y: float) -> Markup:
    """Return a small label with a frame, centred at (x, y)."""
    width = len(words) * 6.4 + 16
    return Markup(
        '<g class="pill"><rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="16" '
        'rx="8"/>{words}</g>'
    ).format(
        left=x - width / 2,
        top=y - 8,
        width=width,
        words=text("words", words, x=x, y=y + 4, anchor="middle"),
    )


def event_group(
    look: str, details: Iterable[str], body: Markup, *, name: str = "", tone: str = ""
) -> Markup:
    """Return a group that the pointer and the arrow keys find; `details` are the lines it shows."""
    return Markup(
        '<g class="event {look}"{name}{tone} tabindex="-1" role="img" aria-label="{title}">'
        "<title>{title}</title>{body}</g>"
    ).format(
        look=look,
        name=Markup(' id="{name}"').format(name=name) if name else "",
        tone=Markup(' style="--tone: var({tone})"').format(tone=tone) if tone else "",
        title=printable("\n".join(filter(None, details))),
        body=body,
    )
