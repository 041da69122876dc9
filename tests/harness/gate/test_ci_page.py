"""The workflows of docs/ci.md: their shell steps are run, with a night that a stand-in writes."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from nights_at_rates import run

from fencepost.harness.gate.known_issues import read_known_issues

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
NIGHT = """\
import json, pathlib
folder = pathlib.Path("results/nights/nightly/20270101T220000Z")
folder.mkdir(parents=True)
night = {{"night": "nightly", "started_at": "2027-01-01T22:00:00+00:00", "ended_at": "x",
         "runs": {runs!r}, "left_out": []}}
(folder / "night.json").write_text(json.dumps(night))
raise SystemExit(1)
"""


def block(key: str) -> Mapping[str, Any]:
    (found,) = [one for one in BLOCKS if key in one]
    return found  # type: ignore[no-any-return]  # of YAML


def steps_of_github() -> list[str]:
    return [step["run"] for step in block("jobs")["jobs"]["night"]["steps"] if "run" in step]


def in_a_checkout(folder: Path, findings: list[str]) -> dict[str, str]:
    """Lay a checkout with its known issues, and stand-ins for pip and for the night."""
    stand_ins = folder / "bin"
    stand_ins.mkdir()
    (stand_ins / "night.py").write_text(NIGHT.format(runs=[run(findings=findings)]))
    python = shlex.quote(sys.executable)
    scripts = {
        "pip": "exit 0",
        "fencepost": f'[ "$1" = night ] && exec {python} {stand_ins}/night.py\n'
        f'exec {python} -m fencepost "$@"',
    }
    for name, text in scripts.items():
        (stand_ins / name).write_text(f"#!/bin/sh\n{text}\n")
        (stand_ins / name).chmod(0o755)
    (known,) = re.findall(r"```yaml\n(known:.*?)```", PAGE, re.DOTALL)
    (folder / "known-issues.yaml").write_text(known.replace("2027-", "2999-"), "utf-8")
    return {
        **os.environ,
        "PATH": f"{stand_ins}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }


def shell(step: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run it as both CIs do: a shell that stops at the first command that fails."""
    ended = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step],
        cwd=folder,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in ended.stderr
    return ended.returncode, ended.stdout


@pytest.mark.parametrize(
    ("findings", "code"), [([], 0), (["storm/lost-write"], 1), (["kip-903/stale-epoch-join/x"], 1)]
)
def test_the_steps_of_github_fail_by_the_gate(
    tmp_path: Path, findings: list[str], code: int
) -> None:
    # The known issue is about another release than that of this night.
    environment = in_a_checkout(tmp_path, findings)
    told = [shell(step, tmp_path, environment) for step in steps_of_github()]
    assert [one for one, _ in told] == [0, 0, code]
    assert ("::error" in told[-1][1]) == bool(findings)
    assert (tmp_path / "summary.md").read_text("utf-8").startswith("## nightly/")
    assert (tmp_path / "gate.xml").exists()
    assert (tmp_path / "gate.json").exists()


def test_the_steps_of_gitlab_fail_by_the_gate(tmp_path: Path) -> None:
    environment = in_a_checkout(tmp_path, ["storm/lost-write"])
    job = block("night")["night"]
    codes = [shell(step, tmp_path, environment)[0] for step in job["script"]]
    assert codes == [0, 0, 1]
    code, out = shell(job["after_script"][0], tmp_path, environment)
    assert code == 0
    assert "storm/lost-write" in out


def test_the_known_issues_of_the_page_are_read(tmp_path: Path) -> None:
    in_a_checkout(tmp_path, [])
    (issue,) = read_known_issues(tmp_path / "known-issues.yaml")
    assert issue.until is not None
