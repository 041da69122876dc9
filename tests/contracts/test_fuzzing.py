"""One seed for all that is drawn: printed, the same in all workers, another one the next day."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
DRAWS = """
from hypothesis import given, strategies as st

drawn = []

@given(st.integers(0, 10**9))
def test_some_are_drawn(number):
    drawn.append(number)

def test_they_are_told(fuzz_seeds):
    print(f"drew {drawn} and {fuzz_seeds[0]}")
"""
FOLLOWS = "fuzz tests: pytest --hypothesis-seed={} TEST draws the same again"


def _told(directory: Path, *options: str) -> tuple[str, str]:
    """What was drawn, and all that was printed."""
    (directory / "test_draws.py").write_text(DRAWS)
    path = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rP", "-p", "conftest", *options],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": path, "CI": "true", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    drew = re.search(r"^drew .*", done.stdout, re.MULTILINE)
    assert drew is not None
    return drew[0], done.stdout


@pytest.mark.slow
def test_the_seed_that_was_printed_draws_the_same_again_on_a_ci_too(tmp_path: Path) -> None:
    today, said = _told(tmp_path)
    seed = re.search(r"--hypothesis-seed=(\d{8}) ", said)
    assert seed is not None
    assert FOLLOWS.format(seed[1]) in said
    again, _ = _told(tmp_path, f"--hypothesis-seed={seed[1]}", "-n", "1")
    tomorrow, said = _told(tmp_path, "--hypothesis-seed=20240229")
    assert FOLLOWS.format("20240229") in said
    assert today == again != tomorrow
    assert tomorrow.endswith(" and 20240229000000")
