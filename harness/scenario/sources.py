"""The sources of scenarios: a file of the user's, or one that the distribution brings, by name."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from fencepost.history.failure import UsageError

_ROOT = Path(__file__).resolve().parents[2] / "scenarios"
"""The directory of scenarios beside the packages, in a checkout as in an installed wheel."""

_NIGHTS: Final = "nights"
_NEAREST_MAX: Final = 3


def library() -> Mapping[str, Path]:
    """Return the scenarios of the distribution, by name."""
    return {
        path.stem: path for path in sorted(_ROOT.glob("*/*.yaml")) if path.parent.name != _NIGHTS
    }


def nights() -> Mapping[str, Path]:
    """Return the nights of the distribution, by name."""
    return {path.stem: path for path in sorted((_ROOT / _NIGHTS).glob("*.yaml"))}


def find_night(text: str) -> Path:
    """Return the night's file that the user means: a path, or a name; raise UsageError if none."""
    found = nights()
    for candidate in (Path(text), _ROOT.parent / text, found.get(text, Path(text))):
        if candidate.is_file():
            return candidate
    raise UsageError(f"{text}: no such file; those that come with Fencepost: {', '.join(found)}")


def find_scenario(text: str) -> Path:
    """Return the file that the user means: a path, a path as in the checkout, or a name.

    Raises UsageError with the nearest names, if there are any: there are a hundred of them.
    """
    found = library()
    for candidate in (Path(text), _ROOT.parent / text, found.get(text, Path(text))):
        if candidate.is_file():
            return candidate
    path = Path(text)
    what = f"no scenario {text!r}:"
    if path.is_dir():
        what = f"{text} is a directory, not a scenario's file;"
    elif path.suffix or len(path.parts) > 1:
        what = f"{text}: no such file;"
    near = " or ".join(map(repr, nearest_names(path.stem, found)))
    raise UsageError(
        f"{what} {f'did you mean {near}? ' if near else ''}'fencepost scenarios' lists all names"
    )


def nearest_names(word: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return a few names that are near, or that the word is a part of, the nearest first."""
    known = sorted(names)
    near = get_close_matches(word, known, n=_NEAREST_MAX)
    parts = [name for name in known if word in name] if word else []
    return tuple(dict.fromkeys((*near, *parts)))[:_NEAREST_MAX]
