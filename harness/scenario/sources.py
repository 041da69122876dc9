"""The sources of scenarios: a file of the user's, or one that the distribution brings, by name."""

from collections.abc import Mapping
from pathlib import Path

from history.failure import UsageError
from nemesis.words import did_you_mean

__all__ = ["find_scenario", "library"]

_ROOT = Path(__file__).resolve().parents[2] / "scenarios"
"""The directory of scenarios beside the packages, in a checkout as in an installed wheel."""


def library() -> Mapping[str, Path]:
    """Return the scenarios of the distribution, by name."""
    return {path.stem: path for path in sorted(_ROOT.glob("*/*.yaml"))}


def find_scenario(text: str) -> Path:
    """Return the file that the user means: a path, a path as in the checkout, or a name."""
    found = library()
    for candidate in (Path(text), _ROOT.parent / text, found.get(text, Path(text))):
        if candidate.is_file():
            return candidate
    raise UsageError(f"no scenario {text!r}: {did_you_mean(Path(text).stem, found)}, or a path")
