"""Clusters that are kept running: what `--keep-running` does once all runs are over, and its words.

Slow imports happen where they are needed, so that a refusal does not wait for them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fencepost.history.failure import HarnessError
from fencepost.history.run_directory import RunDirectory

if TYPE_CHECKING:
    from fencepost.harness.kept.kept_cluster import KeptCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """The request to keep the cluster of a run running, by the flags of a command."""

    for_s: float | None
    """The time for which one is kept running; None: none is."""
    alongside: bool

    @classmethod
    def from_flags(cls, flags: dict[str, Any]) -> "Keeping":
        """Return what the flags of a command ask for."""
        return cls(for_s=flags["keep_s"], alongside=flags["alongside"])

    def keep_first(self, runs: Iterable[RunDirectory], *, aside: bool) -> None:
        """Keep the cluster of the first of these runs running, if one is to be, and say so.

        That it cannot be is said, and changes no verdict. `aside`: on standard error.
        """
        run = next(iter(runs), None)
        if self.for_s is None or run is None:
            return
        from fencepost.harness.kept.keeping import keep
        from fencepost.harness.progress import terminal_progress

        try:
            with terminal_progress() as progress:
                kept = keep(run, for_s=self.for_s, alongside=self.alongside, say=progress.say)
        except HarnessError as error:
            again = f"`fencepost start {run.root}` tries it again"
            click.echo(f"fencepost: not kept running: {error}; {again}", err=True)
            return
        for line in kept_lines(run, kept):
            click.echo(line, err=aside)


def kept_lines(run: RunDirectory, kept: "KeptCluster") -> Iterator[str]:
    """Yield that it is up, where and until when, and the commands to look at it and to end it."""
    from fencepost.clusters.hosts.place import DATA, LOG
    from fencepost.report.notation import utc

    yield f"kept running: the cluster of {run.root}, until {utc(kept.until)}"
    yield from (f"{protocol}: {addresses}" for protocol, addresses in kept.found_at.items())
    for node in kept.silent:
        yield f"{node} does not answer: see {kept.directories[node]}/{LOG}"
    yield f"disks: {run.kept}/*/{DATA} (copies: the run stays as it was judged)"
    yield from (f"look at it: {command}" for command in kept.looks)
    yield f"end it: fencepost stop {run.root}"
