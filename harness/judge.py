"""The checking half of a run: seal, check on Spark, report.

Works on any stored run, without a cluster.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pyspark.sql import SparkSession

from checkers.check import BUDGET_S, check_run
from checkers.session import is_local, spark_session
from checkers.verdict import Verdict
from clusters.java import Java, spark_java_home
from clusters.spark_classes import spark_class_archive
from harness.progress import Progress
from history.manifest import RunState, read_manifest, write_manifest
from history.run_directory import RunDirectory
from history.seal import seal
from report.junit import write_junit
from report.page import write_page
from report.sequence import Window

__all__ = ["judge", "write_reports"]


def judge(
    run: RunDirectory,
    java: Java,
    *,
    master: str,
    progress: Progress,
    budget_s: float = BUDGET_S,
    memory_bytes: int | None = None,
) -> Verdict:
    """Seal the run's history if it is not sealed yet, check it, write verdict and reports.

    `budget_s`: of one pass of checks; `memory_bytes`: of all workers together (by default a share
    of this machine). What does not come to an end within them is unknown.
    """
    # Spark starts while the history is sealed. It stays for the next run of a series, which then is
    # checked in a third of the time, and ends with this process.
    with ThreadPoolExecutor(max_workers=1) as pool:
        starting = pool.submit(_session, java, master, progress, memory_bytes=memory_bytes)
        progress.say("sealing the history")
        seal(run)
        _advance(run, RunState.RECORDED)
        spark = starting.result()
    progress.say("checking on Spark")
    verdict = check_run(run, spark=spark, budget_s=budget_s)
    _advance(run, RunState.CHECKED)
    write_reports(run)
    return verdict


def _session(
    java: Java, master: str, progress: Progress, *, memory_bytes: int | None
) -> SparkSession:
    home = spark_java_home(java)
    archive = None
    if is_local(master):
        archive = spark_class_archive(java, home=home, progress=progress.say)
    return spark_session(
        java_home=home, master=master, memory_bytes=memory_bytes, class_archive=archive
    )


def write_reports(run: RunDirectory, *, window: Window | None = None) -> None:
    """The page and the JUnit file, from what the run directory holds.

    `window`: what of the run the page's sequence picture shows.
    """
    write_page(run, window=window)
    write_junit(run)


def _advance(run: RunDirectory, state: RunState) -> None:
    """Note the state, but never over a failure: a failed run that is judged stays a failed run."""
    manifest = read_manifest(run.manifest_path)
    if manifest.state is not RunState.FAILED:
        write_manifest(run.manifest_path, replace(manifest, state=state))
