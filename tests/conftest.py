"""What all tests share: skips say what is missing, and the fuzz tests draw anew every day.

Hypothesis and the storms draw from one seed, the day's unless `--hypothesis-seed` names another.
It is the same in all workers and printed at the end, with the command that draws the same again.
"""

import gc
import os
from datetime import UTC, datetime

import pytest
from hypothesis import settings

from fencepost.clusters.hosts.docker.daemon import connected
from fencepost.clusters.provision.java import find_java
from fencepost.harness.run.lock import WAIT_VARIABLE
from fencepost.history.failure import HarnessError

# How long an example takes says more of the machine than of the code. Hypothesis would draw the
# same examples at every run of a CI; ours are as old as the day. Tests that want more or fewer
# examples than others say how many times as many: `--hypothesis-profile` goes for all of them.
settings.register_profile("fencepost", deadline=None, derandomize=False, print_blob=True)
for name, examples in {"quick": 10, "long": 10_000}.items():
    settings.register_profile(name, settings.get_profile("fencepost"), max_examples=examples)
settings.load_profile("fencepost")


OTHER_RUNS_S = 3000
"""Runs of tests wait for others on the machine as long as an hour's storm takes, nearly."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Draw the seed before Hypothesis and xdist read it, and let runs wait for each other."""
    os.environ.setdefault(WAIT_VARIABLE, str(OTHER_RUNS_S))
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = f"{datetime.now(UTC):%Y%m%d}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how to draw the same again."""
    option = f"--hypothesis-seed={terminalreporter.config.option.hypothesis_seed}"
    terminalreporter.write_line(f"fuzz tests: pytest {option} TEST draws the same again")


@pytest.fixture(scope="session")
def fuzz_seeds(pytestconfig: pytest.Config) -> range:
    """As many seeds as anybody wants, those of the day."""
    first = int(pytestconfig.option.hypothesis_seed) * 1_000_000
    return range(first, first + 1_000_000)


def pytest_collection_finish() -> None:
    """Let collections of garbage leave out what is there for good: modules and tests."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a JVM where there is none, and say so."""
    java, docker = _missing_java(), _missing_docker()
    for item in items:
        if java and any(item.get_closest_marker(mark) for mark in ("spark", "kafka")):
            item.add_marker(pytest.mark.skip(reason=java))
        if docker and item.get_closest_marker("docker"):
            item.add_marker(pytest.mark.skip(reason=docker))


def _missing_java() -> str | None:
    try:
        find_java()
    except HarnessError as error:
        return f"no Java: {error}"
    return None


def _missing_docker() -> str | None:
    if os.geteuid() != 0:
        return "no containers: their network needs root"
    try:
        connected().__exit__(None, None, None)
    except HarnessError as error:
        return str(error)
    return None
