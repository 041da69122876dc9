"""docs/first-scenario.md, as it stands: its listings make `mine.yaml`, and its commands run it."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from commands import Fencepost

PAGE = Path(__file__).resolve().parents[2] / "docs" / "first-scenario.md"
MINE = Path("mine.yaml")
ON_KAFKA = "reproduce"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the page, and how each line begins that the page shows of its output."""

    words: list[str]
    shown: list[str]


def steps() -> Iterator[str | Command]:
    """The page from top to bottom: listings and commands."""
    for kind, text in re.findall(r"(?ms)^```(yaml)?\n(.*?)^```", PAGE.read_text()):
        if kind:
            yield text
            continue
        for line in re.findall(r"(?m)^\$ fencepost (.*\n(?:[^$].*\n)*)", text):
            command, *shown = line.splitlines()
            yield Command(shlex.split(command), shown)


def written(listing: str) -> None:
    """Do with a listing what the page says: a whole file, steps of the play, or more keys."""
    if listing.startswith("name:"):
        MINE.write_text(listing)
    elif listing.startswith("  - "):
        before = MINE.read_text()
        assert before.count("  - release: join\n") == 1
        MINE.write_text(before.replace("  - release: join\n", listing))
    else:
        MINE.write_text(MINE.read_text() + listing)


def typed(command: Command, fencepost: Fencepost) -> None:
    words = command.words
    file = Path(words[-1]) if words[-2:-1] == [">"] else None
    ended = fencepost(*(words if file is None else words[:-2]), results=Path("results").absolute())
    if file is not None:
        file.write_text(ended.stdout)
    for line in command.shown:
        told = re.escape(line).replace("…", ".*")
        assert re.search(f"^{told}", ended.stdout, re.MULTILINE), ended


@pytest.mark.spark
@pytest.mark.slow
def test_each_step_in_virtual_time_ends_as_the_page_says(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for step in steps():
        if isinstance(step, str):
            written(step)
        elif step.words[0] != ON_KAFKA:
            typed(step, fencepost)


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_kafka_ends_as_the_page_says(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    on_kafka = []
    for step in steps():
        if isinstance(step, str):
            written(step)
        elif step.words[0] == ON_KAFKA:
            on_kafka.append(step)
    (reproduce,) = on_kafka
    typed(reproduce, fencepost)
