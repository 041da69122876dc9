"""Fencepost: break a cluster while clients use it, and prove what it kept and what it lost.

    >>> import fencepost
    >>> run = fencepost.run("smoke", cluster="simulated", seed=1)
    >>> run.is_valid, run.operations.num_rows
    >>> fencepost.open("latest").plot.latency()

The names of this module are the public interface (docs/api.md), and nothing else is. A change of
it is a line in CHANGELOG.md. Slow modules are imported when they are used.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fencepost.harness.api.run import Run as Run
    from fencepost.harness.trials.series import TrialTally as TrialTally
    from fencepost.history.failure import HarnessError as HarnessError
    from fencepost.history.failure import UsageError as UsageError

_HOMES = {
    "HarnessError": "fencepost.history.failure",
    "Run": "fencepost.harness.api.run",
    "TrialTally": "fencepost.harness.trials.series",
    "UsageError": "fencepost.history.failure",
}


def open(run: str | Path = "latest", *, results: str | Path = "results") -> "Run":  # noqa: A001  # as a file is opened
    """Return a stored run: its directory, a scenario's name for its last run, or `latest`.

    `results`: the directory of stored runs. Raises UsageError if there is no such run.
    """
    from fencepost.harness.api.run import Run

    return Run.found(run, Path(results))


def run(scenario: str | Path, **flags: Any) -> "Run":
    """Run a scenario (a name or a file) once, and return the run with its verdict.

    `flags` are those of `fencepost run`: `kafka="4.3.1"`, `cluster="simulated"`, `seed=7`,
    `time_limit="45s"`, `set={"rate": 500}`, `without_rule=["isr-epoch-check"]`, `no_wire=True`.
    An invalid verdict is a result; nothing is printed. Raises UsageError for wrong use, another
    HarnessError if the harness failed.
    """
    from fencepost.harness.api.calls import carried_out

    return carried_out(scenario, flags)


def simulate(scenario: str | Path = "storm", **flags: Any) -> "TrialTally":
    """Carry a scenario out in virtual time with seed after seed, and return what was found.

    `flags` are those of `fencepost simulate`: `seeds=200`, `first=1`, `without_rule=[…]`. No trial
    is stored as a run. Raises UsageError for wrong use.
    """
    from fencepost.harness.api.calls import tried

    return tried(scenario, flags)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"fencepost has no {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*_HOMES, open.__name__, run.__name__, simulate.__name__]
