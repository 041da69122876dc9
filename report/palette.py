"""The colours of a report, each a role with a shade for light and one for dark surroundings.

Roles become CSS variables (`--ok`), and the plots take theirs from the same variables, so that a
page changes with the reader's preference and a kind of fault has one colour everywhere. Text roles
reach a contrast of 4.5 : 1 and lines 3 : 1 against their background. No meaning rests on colour
alone: words, positions and legends say it too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Shade:
    """One colour in both surroundings, as `#rrggbb`."""

    light: str
    dark: str


ROLES: Final[Mapping[str, Shade]] = {
    "page": Shade(light="#f6f7f9", dark="#111519"),
    "card": Shade(light="#ffffff", dark="#191f25"),
    "sunken": Shade(light="#f1f3f6", dark="#13181d"),
    "line": Shade(light="#dde2e8", dark="#2d363f"),
    "text": Shade(light="#1c242d", dark="#e3e8ed"),
    "quiet": Shade(light="#56626f", dark="#9aa7b4"),
    "link": Shade(light="#0b5cad", dark="#7ab8f5"),
    "valid": Shade(light="#17734a", dark="#52c88f"),
    "valid-tint": Shade(light="#e6f4ec", dark="#132a1f"),
    "invalid": Shade(light="#b3202f", dark="#ff8088"),
    "invalid-tint": Shade(light="#fcebec", dark="#351a1d"),
    "unknown": Shade(light="#8a5a00", dark="#edb44c"),
    "unknown-tint": Shade(light="#fdf3dd", dark="#30260f"),
    "ok": Shade(light="#2566b0", dark="#68a8ea"),
    "info": Shade(light="#b06a00", dark="#eeae3f"),
    "fail": Shade(light="#c22352", dark="#ff7a9c"),
    "p50": Shade(light="#2566b0", dark="#68a8ea"),
    "p99": Shade(light="#7a45b8", dark="#b897f2"),
    "max": Shade(light="#7b8794", dark="#8693a0"),
    "disturbed": Shade(light="#b8481a", dark="#f39a5e"),
    "records": Shade(light="#0f7f78", dark="#43c0b5"),
    "refused": Shade(light="#0f7f78", dark="#43c0b5"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultLook:
    """The look of a kind of fault: the state of its nodes, in a word or two, and its colour."""

    state: str = ""
    shade: Shade | None = None


# For kinds and sources without a colour of their own, in the order of their names.
_SPARE: Final = (
    Shade(light="#2566b0", dark="#68a8ea"),
    Shade(light="#c4571b", dark="#f08a50"),
    Shade(light="#0f7f78", dark="#43c0b5"),
    Shade(light="#7a45b8", dark="#b897f2"),
    Shade(light="#6b7d10", dark="#b2c54a"),
    Shade(light="#b3316e", dark="#ef78ae"),
    Shade(light="#5c6b7a", dark="#97a6b5"),
    Shade(light="#8d5a34", dark="#c08d63"),
)


def fault_colours(
    kinds: Iterable[str], looks: Mapping[str, FaultLook] = MappingProxyType({})
) -> Mapping[str, Shade]:
    """Return a colour for each kind of fault: the same in every run for kinds in `looks`."""
    names = sorted(set(kinds))
    own = {name: look.shade for name, look in looks.items() if look.shade is not None}
    # From the other end than sources, whose first is also the blue of what is ok.
    spare = reversed(_cycled(max(len(_SPARE), sum(name not in own for name in names))))
    return {name: own.get(name) or next(spare) for name in names}


def source_colours(sources: Iterable[str]) -> Mapping[str, Shade]:
    """Return a colour for each source of samples, in the order of their names."""
    names = sorted(set(sources))
    return dict(zip(names, _cycled(len(names)), strict=True))


def _cycled(number: int) -> tuple[Shade, ...]:
    return tuple(_SPARE[place % len(_SPARE)] for place in range(number))
