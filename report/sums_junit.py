"""Summed runs for a build server: one test suite a group of runs, one test case a run.

Names tell scenario, release, host, variant and seed apart, so that a history of builds does not
take one for another. Invalid is a failure, unknown and failed are errors. Runs of a night that
found what their scenario expects of the release are skipped, as are those that were left out.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fencepost.history.atomic import write_atomically
from fencepost.report.notation import printable
from fencepost.report.sums import LeftOutCell, RunGroup, SummedRun, run_groups

_TAGS: Final = {"invalid": "failure", "unknown": "error", "failed": "error"}
_APART: Final = re.compile(r"[^A-Za-z0-9_-]+")
"""Build servers take a dot in a class's name for the end of a package's."""


def write_sums_junit(
    path: Path, runs: Sequence[SummedRun], *, left_out: Sequence[LeftOutCell] = ()
) -> None:
    """Write the file. Raises HarnessError if it cannot be written."""
    root = ET.Element("testsuites")
    for group in run_groups(runs):
        root.append(_suite(group))
    for one in left_out:
        root.append(_left_out(one))
    ET.indent(root)
    content = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    write_atomically(path, content + b"\n")


def _suite(group: RunGroup) -> ET.Element:
    expected = sum(run.as_expected for run in group.runs)
    suite = _element(
        "testsuite",
        name=f"{group.scenario} on {group.subject}",
        tests=str(len(group.runs)),
        failures=str(group.count("invalid") - expected),
        errors=str(group.count("unknown") + group.count("failed")),
        skipped=str(expected),
        time=f"{sum(run.seconds for run in group.runs):.3f}",
    )
    for run in group.runs:
        suite.append(_case(run))
    return suite


def _case(run: SummedRun) -> ET.Element:
    case = _element(
        "testcase",
        classname=_class(run.scenario, run.subject),
        name=f"{run.scenario} on {run.subject}, host {run.host}, seed {run.seed}",
        time=f"{run.seconds:.3f}",
    )
    found = ", ".join(run.findings)
    if run.as_expected:
        case.append(_element("skipped", message=f"invalid, as the scenario expects: {found}"))
    elif run.verdict in _TAGS:
        problem = _element(_TAGS[run.verdict], type=run.verdict, message=run.reason or found)
        problem.text = printable(
            "\n".join((*run.findings, f"run: {run.run}", f"repeat: {run.command}"))
        )
        case.append(problem)
    return case


def _left_out(one: LeftOutCell) -> ET.Element:
    suite = _element(
        "testsuite",
        name=f"{one.scenario} on {one.subject}, left out",
        tests="1",
        failures="0",
        errors="0",
        skipped="1",
        time="0.000",
    )
    name = f"{one.scenario} on {one.subject}, left out"
    case = _element(
        "testcase", classname=_class(one.scenario, one.subject), name=name, time="0.000"
    )
    case.append(_element("skipped", message=f"left out: {one.reason}"))
    suite.append(case)
    return suite


def _class(scenario: str, subject: str) -> str:
    return f"fencepost.{_APART.sub('_', scenario)}.{_APART.sub('_', subject)}"


def _element(tag: str, **attributes: str) -> ET.Element:
    return ET.Element(tag, {key: printable(value) for key, value in attributes.items()})
