"""The performed play: each step with its time and nodes, on disk before it is tried."""

from pathlib import Path

import yaml

from nemesis.play import step_data
from nemesis.verbs.step import Step

__all__ = ["PerformedPlay"]


class PerformedPlay:
    """`play.yaml` of a run, in the words of a scenario, so that it can be replayed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._path.write_text("# What was performed, at which time of the play.\n")

    def note(self, step: Step) -> None:
        """Append a step, on disk at once."""
        line = yaml.safe_dump(
            [step_data(step)], default_flow_style=True, sort_keys=False, width=100_000
        )
        with self._path.open("a", encoding="utf-8") as play:
            play.write(f"- {line.strip().removeprefix('[').removesuffix(']')}\n")
