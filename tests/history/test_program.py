"""Processes of ours run a module as `-m` does, and have no use for hypothesis."""

import os
import subprocess
from pathlib import Path

from fencepost.history.program import command

MODULE = """
import sys
try:
    import hypothesis
except ImportError:
    print(__name__, sys.argv[1:], "alone")
sys.exit(3)
"""


def test_a_module_runs_with_its_arguments_and_without_hypothesis(tmp_path: Path) -> None:
    (tmp_path / "asked.py").write_text(MODULE)
    places = os.pathsep.join([str(tmp_path), str(Path(__file__).resolve().parents[2])])
    ended = subprocess.run(
        command("asked", "one", "two"),
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": places},
    )
    assert (ended.stdout, ended.returncode) == ("__main__ ['one', 'two'] alone\n", 3)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
