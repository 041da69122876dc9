"""Stored runs judged again after each transformation.

A transformation must not get the cluster accused; a plant has to be called by a check.

A transformation is one task, and its checks are tasks of that task: a run that is worth this is
small, and on several cores several transformations are tried at once. The copy of a run that is
accused is kept, with its verdict.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from fencepost.checkers.check import check_run
from fencepost.checkers.runner.tasks import InProcessTasks, TaskSession, run_tasks
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.harness.metamorphic.planted import PLANTED
from fencepost.harness.metamorphic.planted_page import MISSED, NOTHING, UNKNOWN
from fencepost.harness.metamorphic.transformation import Transformation, transformation_of
from fencepost.harness.metamorphic.transformations import TRANSFORMATIONS
from fencepost.harness.seeds import stream
from fencepost.history.failure import HarnessError
from fencepost.history.run_directory import RunDirectory

_BUDGET_S: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformed:
    """A run after a transformation."""

    transformation: Transformation
    validity: Validity | None
    """None: the run had nothing to which it could be done."""
    accused: Mapping[str, int] = field(default_factory=dict)
    """The checks by which it is invalid now, each with its count of anomalies."""
    doubts: Sequence[str] = ()
    """The reasons why checks are unknown now."""
    changed: Sequence[str] = ()
    """The checks whose answer is another one than before, if none may be."""
    kept: Path | None = None
    """The transformed run, if it is worth a look."""

    @property
    def holds(self) -> bool:
        """True unless the cluster is accused, or an answer that had to stay has changed.

        Of a plant: if a check calls it that has to, or the run is unknown.
        """
        if self.transformation.is_plant:
            called = self.accused.keys() & {*self.transformation.called}
            return self.validity in (None, Validity.UNKNOWN) or bool(called)
        return not self.accused and not self.changed

    @property
    def told_by(self) -> str:
        """The check that called a plant, in a cell of the page; or what became of the run."""
        called = [
            name for name in self.transformation.called or self.accused if name in self.accused
        ]
        if self.validity is None:
            return NOTHING
        if not self.holds:
            return MISSED
        return called[0] if called else UNKNOWN


def verdict_before(run: RunDirectory, *, root: Path) -> Verdict:
    """Return the verdict on a sealed run as it is; the run's own is left alone.

    `root`: the directory for its copies. Raises HarnessError if it cannot be judged.
    """
    copy = CopiedRun(run, root / "as-it-is")
    try:
        return check_run(copy.run, session=InProcessTasks())
    finally:
        copy.remove()


def outcomes(
    run: RunDirectory,
    before: Verdict,
    *,
    seed: int,
    root: Path,
    session: TaskSession,
    chosen: Sequence[Transformation],
) -> Iterator[Transformed]:
    """Yield what becomes of a run by each transformation, drawn from the seed.

    `before`: its verdict as it is, which is not invalid. `root`: the directory for its copies.
    Raises HarnessError if a transformation cannot be carried out.
    """
    work = partial(_outcome, run=run, before=before, seed=seed, root=root)
    names = [one.name for one in chosen]
    for result in run_tasks(session, names, work, budget_s=_BUDGET_S * len(names)):
        if result.content is None:
            raise HarnessError(f"{run.root}, {result.task}: {result.failure}")
        yield result.content


def _outcome(
    name: str, *, run: RunDirectory, before: Verdict, seed: int, root: Path
) -> Transformed:
    transformation = transformation_of(name, (*TRANSFORMATIONS, *PLANTED))
    copy, found = CopiedRun(run, root / name), None
    try:
        if not transformation.change(copy, stream(seed, name)):
            found = Transformed(transformation=transformation, validity=None)
            return found
        copy.seal()
        try:
            after = check_run(copy.run, session=InProcessTasks())
        except HarnessError as error:
            if not transformation.is_plant:
                raise
            found = Transformed(  # it is refused, and so not valid
                transformation=transformation, validity=Validity.UNKNOWN, doubts=(str(error),)
            )
            return found
        found = _compared(transformation, before, after)
        return found if found.holds else replace(found, kept=copy.run.root)
    finally:
        if found is None or found.holds:
            copy.remove()


def _compared(transformation: Transformation, before: Verdict, after: Verdict) -> Transformed:
    told = zip(map(_answer, before.checks), map(_answer, after.checks), strict=True)
    return Transformed(
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
