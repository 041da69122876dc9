"""The styling that the plots leave to the page: colours, legends and the look of tooltips.

Each model that has a colour says in its tags which CSS variables to take it from
(`line_color=--ok`), and `page.js` applies them, in light and in dark. A model that belongs to an
entry of a legend carries its name (`entry=info`), so that the entry can hide it.
"""

from collections.abc import Sequence
from html import escape
from typing import Any, Final

FONT: Final = "system-ui, sans-serif"

_LABEL_STYLE: Final = "color: var(--quiet); text-align: right; padding-right: 8px"
_FIELD_STYLE: Final = "font-variant-numeric: tabular-nums"


def paint(model: Any, **colours: str) -> None:
    """Have `page.js` give these properties of the model the colours of these CSS variables."""
    tag(model, **colours)


def tag(model: Any, **content: str) -> None:
    """Add to what `page.js` finds on the model, `name=content` each."""
    model.tags = [*model.tags, *(f"{name}={value}" for name, value in content.items())]


def tooltip(rows: Sequence[tuple[str, str]]) -> str:
    """Return a table of labels and Bokeh fields, in the page's colours.

    Bokeh escapes the fields.
    """
    cells = "".join(
        f'<tr style="vertical-align: top"><td style="{_LABEL_STYLE}">{_plain(label)}</td>'
        f'<td style="{_FIELD_STYLE}">{field}</td></tr>'
        for label, field in rows
    )
    return f'<table style="border-spacing: 0; max-width: 420px; font: 12px {FONT}">{cells}</table>'


def fault_entry(kind: str) -> str:
    """Return the name of a kind of fault in the legend, apart from the names of series."""
    return f"fault:{kind}"


def _plain(label: str) -> str:
    """Return the label without HTML and Bokeh's fields, whatever a run named its nodes."""
    return escape(label).replace("@", "&#64;").replace("$", "&#36;")
