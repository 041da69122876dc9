"""The windows of a run as a report sees them: laid, opened, struck, lifted; and their counts.

A window is open from the moment its rule meets the first message (which it holds, or only sees, in
an ambush) until it is lifted. One in which no strike took effect shows nothing of that message.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from fencepost.checkers.grounds.windows import WindowKind, window_kinds_in
from fencepost.checkers.verdict import Verdict
from fencepost.report.notation import integer, one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSpan:
    """One row of `windows`."""

    index: int
    name: str
    """The name of its rule."""
    kind: str
    """The message that it lies around: `AlterPartition request`."""
    form: str
    """The kind of its episode: `window`, `relay`, `ambush`."""
    key: str
    """The partition that it is about; empty: none."""
    begin_ns: int
    """The time when its rule was laid."""
    held_ns: int | None
    """The time when the first message met its rule; None: it never opened."""
    struck: tuple[str, ...]
    """The kinds of strike that took effect while it was open."""
    strike_ns: int | None
    """The time of the first of them."""
    end_ns: int | None
    """The time when it was lifted; None: it was open when the recording ended."""

    def until_ns(self, run_end_ns: int) -> int:
        """Return the time when it was lifted; the end of the run if it never was."""
        return max(self.begin_ns, run_end_ns if self.end_ns is None else self.end_ns)

    @property
    def fate(self) -> str:
        """The course of it in two words at most."""
        if self.held_ns is None:
            return "never opened"
        return "struck" if self.struck else "closed unused"


def window_spans_of(windows: pa.Table) -> tuple[WindowSpan, ...]:
    """Return the rows of a `windows` table (schema `history.schema.WINDOWS`), by `index`."""
    spans = (
        WindowSpan(
            index=row["index"],
            name=row["window"],
            kind=row["kind"],
            form=row["form"],
            key=row["key"] or "",
            begin_ns=row["begin_ns"],
            held_ns=row["held_ns"],
            struck=tuple(row["struck"]),
            strike_ns=row["strike_ns"],
            end_ns=row["end_ns"],
        )
        for row in windows.to_pylist()
    )
    return tuple(sorted(spans, key=lambda span: span.index))


def window_line(kind: WindowKind) -> str:
    """Return `Vote request: 3 of 4 opened, 2 struck (kill 1, pause 1), 1 closed unused`."""
    strikes = ", ".join(f"{one_line(name)} {integer(n)}" for name, n in kind.strikes.items() if n)
    opened, laid = integer(kind.opened_count), integer(kind.laid_count)
    return (
        f"{one_line(kind.kind)}: {opened}{'' if opened == laid else f' of {laid}'} opened, "
        f"{integer(kind.struck_count)} struck{f' ({strikes})' if strikes else ''}, "
        f"{integer(kind.unused_count)} closed unused"
    )


def window_properties(verdict: Verdict) -> Mapping[str, str]:
    """Return properties for a build server: `window.AlterPartition request.struck` and so on."""
    return dict(pair for kind in window_kinds_in(verdict) or () for pair in _properties(kind))


def _properties(kind: WindowKind) -> Iterator[tuple[str, str]]:
    name = f"window.{kind.kind}"
    yield f"{name}.laid", str(kind.laid_count)
    yield f"{name}.opened", str(kind.opened_count)
    yield f"{name}.struck", str(kind.struck_count)
    yield f"{name}.unused", str(kind.unused_count)
    for strike, count in kind.strikes.items():
        if count:
            yield f"{name}.struck_by.{strike}", str(count)
