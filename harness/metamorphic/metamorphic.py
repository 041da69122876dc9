"""Stored runs judged again after each transformation: none may become invalid."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from checkers.check import check_run
from checkers.runner.tasks import InProcessTasks
from checkers.verdict import CheckResult, Validity, Verdict
from harness.metamorphic.copied_run import CopiedRun
from harness.metamorphic.transformations import TRANSFORMATIONS, Transformation
from harness.seeds import stream
from history.failure import HarnessError
from history.run_directory import RunDirectory

__all__ = ["Outcome", "outcomes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run after a transformation."""

    transformation: Transformation
    validity: Validity | None
    """None: the run had nothing to which it could be done."""
    accused: Mapping[str, int]
    """The checks by which it is invalid now, each with its count of anomalies."""
    doubts: Sequence[str]
    """The reasons why checks are unknown now."""
    changed: Sequence[str]
    """The checks whose answer is another one than before, if none may be."""

    @property
    def holds(self) -> bool:
        """True unless the cluster is accused, or an answer that had to stay has changed."""
        return not self.accused and not self.changed


def outcomes(
    run: RunDirectory, *, seed: int, chosen: Sequence[Transformation] = TRANSFORMATIONS
) -> Iterator[Outcome]:
    """Yield what becomes of a run by each transformation, drawn from the seed.

    Raises HarnessError if it is invalid as it is: then nothing can be said.
    """
    with _copy(run) as copy:
        before = check_run(copy.run, session=InProcessTasks())
    if before.validity is Validity.INVALID:
        raise HarnessError(f"{run.root} is invalid as it is; take a run that is not")
    for one in chosen:
        with _copy(run) as copy:
            if one.change(copy, stream(seed, one.name)):
                copy.seal()
                after = check_run(copy.run, session=InProcessTasks())
                yield _outcome(one, before, after)
            else:
                yield Outcome(transformation=one, validity=None, accused={}, doubts=(), changed=())


@contextmanager
def _copy(run: RunDirectory) -> Iterator[CopiedRun]:
    """Yield a copy on the disk of the run, so that files need not be copied."""
    with TemporaryDirectory(prefix=".metamorphic-", dir=run.root.parent) as directory:
        yield CopiedRun(run, Path(directory) / "run")


def _outcome(transformation: Transformation, before: Verdict, after: Verdict) -> Outcome:
    told = zip(map(_answer, before.checks), map(_answer, after.checks), strict=True)
    return Outcome(
        transformation=transformation,
        validity=after.validity,
        accused={
            one.check: one.anomaly_count for one in after.checks if one.validity is Validity.INVALID
        },
        doubts=tuple(
            f"{one.check}: {one.reason}" for one in after.checks if one.validity is Validity.UNKNOWN
        ),
        changed=tuple(old[0] for old, new in told if transformation.keeps and old != new),
    )


def _answer(one: CheckResult) -> tuple[str, Validity, int, int]:
    return one.check, one.validity, one.case_count, one.allowed_count
