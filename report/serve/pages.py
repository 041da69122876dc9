"""The templates of the web page, and the one way in which they are filled."""

from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fencepost.report import notation
from fencepost.report.palette import ROLES

_HERE: Final = Path(__file__).parent


def render(template: str, **values: object) -> str:
    """Return a page: a template of this folder or of `timeline/`, filled with these values.

    Pages extend `layout.html.j2`, whose blocks are `title`, `head` (styles and scripts of their
    own) and `main`. Values are escaped, and control characters in them shown as `�`.
    """
    return _environment().get_template(template).render(**values)


def palette_css() -> str:
    """Return the style that gives each role of `report.palette` a variable, light and dark."""
    light = "".join(f"--{role}:{shade.light};" for role, shade in ROLES.items())
    dark = "".join(f"--{role}:{shade.dark};" for role, shade in ROLES.items())
    return f":root{{{light}}}\n@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader([_HERE, _HERE / "timeline"]),
        autoescape=True,
        finalize=_inert,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        integer=notation.integer,
        moment=notation.moment,
        seconds=lambda seconds: notation.length(seconds * 1e9),
        size=notation.size,
        utc=notation.utc,
    )
    return environment


def _inert(value: object) -> object:
    """Return a value of a run so that it is shown, not acted on. Markup is our own."""
    is_text = isinstance(value, str) and type(value) is not Markup
    return notation.printable(str(value)) if is_text else value
