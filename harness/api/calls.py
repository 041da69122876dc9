"""What the command line does, from Python: to run a scenario, or trials of it in virtual time."""

from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from fencepost.clusters.provision.java import find_java
from fencepost.harness.api.run import Run
from fencepost.harness.cli.run import run as run_command
from fencepost.harness.cli.running import (
    choose_cluster,
    options_from,
    repeat_words,
    scenario_of,
)
from fencepost.harness.cli.simulate import simulate as simulate_command
from fencepost.harness.cli.simulating import plans_of
from fencepost.harness.cli.single_run import run_once
from fencepost.harness.prepare.reference import rules_of, rules_without
from fencepost.harness.progress import SilentProgress
from fencepost.harness.run.spark_start import SparkStart
from fencepost.harness.seeds import new_seed
from fencepost.harness.trials.series import TrialSeries, TrialTally, enough
from fencepost.history.failure import UsageError

_ONE_RUN: Final = "fencepost.run makes one run, and returns it"
_NOT_OF_RUN: Final = dict.fromkeys(("runs", "dry_run", "as_json", "keep_s"), _ONE_RUN)
_ONLY_COUNTS: Final = "fencepost.simulate stores and prints nothing; it returns what was found"
_NOT_OF_SIMULATE: Final = dict.fromkeys(
    ("store_max", "keep", "dry_run", "results", "as_json"), _ONLY_COUNTS
)


def carried_out(scenario: str | Path, flags: Mapping[str, Any]) -> Run:
    """Run a scenario once. `flags`: those of `fencepost run`, as `fencepost.run` has them.

    Raises UsageError for wrong use, another HarnessError if the harness failed.
    """
    found = _flags(run_command, scenario, flags, but=_NOT_OF_RUN)
    loaded = scenario_of(str(scenario), found)
    progress = SilentProgress()
    seed = found.pop("seed") or new_seed()
    choose_cluster(loaded, found, progress)
    command = repeat_words(str(scenario), seed, found)
    # Workers of Spark stay where the first call found them; the caller may go elsewhere.
    found["results"] = found["results"].absolute()
    outcome = run_once(
        loaded, options_from(found, seed=seed, command=command), progress, progress.say
    )
    return Run(outcome.run)


def tried(scenario: str | Path, flags: Mapping[str, Any]) -> TrialTally:
    """Make trials in virtual time. `flags`: those of `fencepost simulate`, as above."""
    found = _flags(simulate_command, scenario, flags, but=_NOT_OF_SIMULATE)
    plans = plans_of(str(scenario), found["system"], found["metadata_version"], tuple(found["set"]))
    first = found["first"]
    rules = rules_without(found["off"], rules_of(plans(first).cluster))
    progress = SilentProgress()
    spark = SparkStart(find_java(), master=found["spark_master"], say=progress.say)
    series = TrialSeries(
        session=spark.session(), plans=plans, rules=rules, first=first, count=found["seeds"]
    )
    return deque(series.run(until=enough(found["until"])), maxlen=1).pop()


def _flags(
    command: click.Command,
    scenario: str | Path,
    given: Mapping[str, Any],
    *,
    but: Mapping[str, str],
) -> dict[str, Any]:
    """Return the flags of a command, those that are not given at their defaults.

    `but`: the parameters that only the command has a use for, and why a call has none.
    """
    words = [str(scenario), *(word for one in given.items() for word in _words(*one))]
    try:
        with command.make_context(command.name, words) as context:
            found = dict(context.params)
            for one in command.params:
                name = one.name or ""
                is_given = context.get_parameter_source(name) is not ParameterSource.DEFAULT
                if name in but and is_given and found[name] != one.get_default(context):
                    raise UsageError(f"{one.opts[0]}: {but[name]}")
    except click.ClickException as error:
        raise UsageError(error.format_message()) from error
    return found


def _words(name: str, value: Any) -> Iterable[str]:
    flag = f"--{name.rstrip('_').replace('_', '-')}"
    match value:
        case None | False:
            return ()
        case True:
            return (flag,)
        case Mapping():
            return tuple(word for key, one in value.items() for word in (flag, f"{key}={one}"))
        case list() | tuple():
            return tuple(word for one in value for word in (flag, str(one)))
        case _:
            return flag, str(value)
