"""Small charts that the server draws; the table beside each has the same figures."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from fencepost.report.serve.archive import ListedNight, SubjectRate

_VERDICTS: Final = ("valid", "unknown", "invalid", "failed")
"""From the bottom of a bar to its top."""
_HEIGHT: Final = 120.0
_STEP: Final = 22.0
_BAR: Final = 16.0


def night_bars(nights: Sequence[ListedNight]) -> Markup:
    """Return the runs of each night by verdict, a bar a night, the oldest first."""
    most = max((sum(night.counts.values()) for night in nights), default=0)
    bars = Markup("").join(
        _bar(night, x=place * _STEP, most=most) for place, night in enumerate(nights)
    )
    return Markup(
        '<svg class="bars" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        'height="{height:.0f}" role="img" aria-label="Runs of each night by verdict, at most '
        '{most}; the table has the figures"><line class="axis" x1="0" x2="{width:.0f}" '
        'y1="{floor:.1f}" y2="{floor:.1f}"/>{bars}</svg>'
    ).format(
        width=max(1, len(nights)) * _STEP,
        height=_HEIGHT + 2,
        floor=_HEIGHT + 0.5,
        most=most,
        bars=bars,
    )


def interval_bar(rate: SubjectRate) -> Markup:
    """Return a rate on a line from 0 to 100 %, with its interval as a bar."""
    low, high = 100 * rate.low, 100 * rate.high
    seen = Markup("")
    if rate.runs:
        at = 100 * rate.hits / rate.runs
        seen = Markup('<circle class="seen" cx="{:.1f}" cy="7" r="4"/>').format(at)
    return Markup(
        '<svg class="interval" viewBox="-5 0 110 14" width="220" height="28" aria-hidden="true">'
        '<line class="axis" x1="0" x2="100" y1="7" y2="7"/><path class="axis" d="M0 4v6M50 5v4'
        'M100 4v6"/><rect class="range" x="{low:.1f}" y="4.500" width="{width:.1f}" height="5" '
        'rx="2"/>{seen}</svg>'
    ).format(low=low, width=max(0.8, high - low), seen=seen)


def _bar(night: ListedNight, *, x: float, most: int) -> Markup:
    parts, y = [], _HEIGHT
    for verdict in _VERDICTS:
        height = _HEIGHT * night.counts.get(verdict, 0) / most if most else 0.0
        y -= height
        if height:
            parts.append(
                Markup(
                    '<rect class="fill-{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>'
                ).format(verdict, x + (_STEP - _BAR) / 2, y, _BAR, height)
            )
    told = ", ".join(f"{count} {verdict}" for verdict, count in night.counts.items() if count)
    return Markup("<g><title>{}: {}</title>{}</g>").format(
        night.time, told or "no run", Markup("").join(parts)
    )
