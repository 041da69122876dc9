"""One run after the other, with their verdicts said: what `run` and `replay` share.

It imports what it takes to run, which takes seconds; whoever parses flags imports it late.
"""

from collections.abc import Callable, Iterable

from harness.cli.options import emit_json
from harness.cli.verdicts import exit_code_of, outcome_json, say_verdict
from harness.progress import Progress, terminal_progress
from harness.run.outcome import RunOutcome
from harness.run.run import run_scenario
from harness.scenario.options import RunOptions
from harness.scenario.scenario import Scenario
from history.failure import HarnessError, UsageError

__all__ = ["run_all"]


def run_all(
    scenario: Scenario,
    options: Callable[[Progress], Iterable[RunOptions]],
    *,
    alone: bool,
    as_json: bool,
) -> int:
    """Run once for each of `options`, and return the exit code of them together.

    A failed run raises its HarnessError if it is `alone`; in a series it is a result, and the
    series goes on. `as_json`: print one document on standard output, and all else beside it.
    """
    with terminal_progress() as progress:
        outcomes = [
            _run_one(scenario, one, progress, alone=alone, aside=as_json)
            for one in options(progress)
        ]
    if as_json:
        emit_json([outcome_json(outcome) for outcome in outcomes])
    return exit_code_of(outcomes)


def _run_one(
    scenario: Scenario, options: RunOptions, progress: Progress, *, alone: bool, aside: bool
) -> RunOutcome | HarnessError:
    progress.say(f"{scenario.title} (repeat: {options.command})")
    try:
        outcome = run_scenario(scenario, options, progress)
    except UsageError:
        raise
    except HarnessError as error:
        if alone:
            raise
        progress.say(f"the run failed: {error}")
        return error
    say_verdict(outcome, aside=aside)
    return outcome
