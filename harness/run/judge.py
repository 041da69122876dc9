"""The checking half of a run: seal, check on Spark, report.

Works on any stored run, without a cluster.
"""

from dataclasses import replace

from fencepost.checkers.check import BUDGET_S, check_run
from fencepost.checkers.runner.spark_tasks import SparkTasks
from fencepost.checkers.verdict import Verdict
from fencepost.harness.progress import Progress
from fencepost.harness.run.reports import write_reports
from fencepost.harness.run.spark_start import SparkStart
from fencepost.history.manifest import RunState, read_manifest, write_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.seal import seal


def judge(
    run: RunDirectory, spark: SparkStart, *, progress: Progress, budget_s: float = BUDGET_S
) -> Verdict:
    """Seal the run's history if it is not sealed yet, check it, write verdict and reports.

    `budget_s`: the bound on one pass of checks; a check that does not end within it is unknown.
    Spark starts while the history is sealed.
    """
    spark.begin()
    progress.say("sealing the history")
    seal(run)
    advance(run, RunState.RECORDED)
    progress.say("checking on Spark")

    def shown(done: int, count: int) -> None:
        progress.live(f"checking on Spark: {done} of {count} tasks of this pass")

    session = SparkTasks(spark.session(), shown=shown)
    verdict = check_run(run, session=session, budget_s=budget_s)
    advance(run, RunState.CHECKED)
    progress.live("drawing the page")
    write_reports(run)
    return verdict


def advance(run: RunDirectory, state: RunState) -> None:
    """Note the state, but never over a failure: a failed run that is judged stays a failed run."""
    manifest = read_manifest(run.manifest_path)
    if manifest.state is not RunState.FAILED:
        write_manifest(run.manifest_path, replace(manifest, state=state))
