"""The cost of `fencepost check` of a stored run: time, and memory of each of its processes.

The command runs as users run it, so its page, its JVM and its workers are in the figures. It
replaces the verdict and the page of the run.
"""

import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

import psutil

from fencepost.bench.measuring import Cost, measured, spread
from fencepost.checkers.verdict import EXIT_CODES
from fencepost.history.failure import HarnessError

_MEGABYTE: Final = 1 << 20
_JUDGED: Final = frozenset(EXIT_CODES.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFigures:
    """The figures of all repetitions, in order."""

    command: str
    costs: tuple[Cost, ...]

    def as_data(self) -> dict[str, object]:
        """Return the figures for JSON."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """Yield the figures as lines of text."""
        yield f"{self.command}: min / median / max of {len(self.costs)}"
        for title, (figure, form) in _ROWS.items():
            yield f"  {title:14} {spread([figure(one) for one in self.costs], form)}"


def check_bench(
    run: str, *, results: Path, runs: int, say: Callable[[str], None] = lambda _: None
) -> CheckFigures:
    """Return the figures of judging a stored run, `runs` times.

    Raises HarnessError if the command fails; what the verdict is makes no difference.
    """
    command = (sys.executable, "-m", "fencepost", "check", run, "--results", str(results))
    costs = []
    for number in range(1, runs + 1):
        say(f"judging {run}, {number} of {runs}")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            assert process.stdout is not None
            printed: deque[bytes] = deque(maxlen=1)
            cost = measured(
                partial(printed.extend, process.stdout), root=psutil.Process(process.pid)
            )
        if process.returncode not in _JUDGED:
            last = b"".join(printed).decode(errors="replace").strip()
            raise HarnessError(f"`fencepost check {run}` ended with {process.returncode}: {last}")
        say(f"judged {run} in {cost.seconds:.1f} s")
        costs.append(cost)
    return CheckFigures(command=f"fencepost check {run}", costs=tuple(costs))


def _largest(program: str) -> Callable[[Cost], float]:
    """Return the megabytes of the largest process of a program, in a cost."""
    return lambda cost: max(cost.by_program.get(program, (0,))) / _MEGABYTE


_ROWS: Final[dict[str, tuple[Callable[[Cost], float], str]]] = {
    "seconds": (lambda cost: cost.seconds, "9,.1f"),
    "CPU seconds": (lambda cost: cost.cpu_s, "9,.1f"),
    "MB in all": (lambda cost: cost.rss_bytes_max / _MEGABYTE, "9,.0f"),
    "MB of a worker": (_largest("pyspark.daemon"), "9,.0f"),
    "MB of the JVM": (_largest("java"), "9,.0f"),
    "MB of harness": (_largest("fencepost"), "9,.0f"),
}
"""The figures of a cost by title; workers are forked from one that is smaller than any."""
