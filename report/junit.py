"""The verdict for a build server: one test suite a run, one test case a check.

Invalid is a failure, with the first anomalies and the facts that prove them; unknown is an error,
for a build must not pass on it, and skipped where it follows from a failure. A check that had
nothing to judge, that cannot fail on this cluster, or all of whose findings are known, is skipped.
A run that failed or was not checked is one test case in error. The properties count the cases that
each check judged. The shape is the one that Jenkins' and GitLab's readers accept (the Apache Ant
JUnit schema with properties).
"""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fencepost.checkers.anomaly import Anomaly
from fencepost.checkers.verdict import CheckResult, RunFinding, Validity, Verdict
from fencepost.history.atomic import write_atomically
from fencepost.history.manifest import Manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.report.evidence import evidence_lines
from fencepost.report.found import finding_words
from fencepost.report.headline import Headline, headline_of, waived_words
from fencepost.report.kinds import kind_properties
from fencepost.report.notation import printable
from fencepost.report.operation_kinds import operation_properties
from fencepost.report.reading import RunAnswers, read_answers
from fencepost.report.service import service_properties
from fencepost.report.windows import window_properties

_DETAILS_MAX: Final = 4
_SKIPPED: Final = {
    Validity.NOT_JUDGED: "not judged: there was no case",
    Validity.FIGURE: "a figure: it cannot fail on this cluster",
    Validity.KNOWN: "known",
}


def write_junit(run: RunDirectory) -> Path:
    """Write `junit.xml` of a run in any state, and say where it lies.

    Raises HarnessError if the file cannot be written.
    """
    answers = read_answers(run)
    headline = headline_of(answers.verdict, manifest=answers.manifest)
    suite = _suite(run, answers.manifest, answers.verdict)
    _properties(suite, run, answers, headline)
    if answers.manifest is not None and answers.manifest.waived:
        suite.append(_waived(answers.manifest))
    if answers.verdict is None:
        _missing_verdict(suite, headline)
    else:
        for result in answers.verdict.checks:
            _case(suite, result, answers.verdict.findings)
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    content = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    write_atomically(run.junit_path, content + b"\n")
    return run.junit_path


def _suite(run: RunDirectory, manifest: Manifest | None, verdict: Verdict | None) -> ET.Element:
    checks = verdict.checks if verdict else ()
    waived_count = int(bool(manifest and manifest.waived))
    errors = sum(map(_is_error, checks)) if verdict else 1
    attributes = {
        "name": manifest.scenario if manifest else run.root.name,
        "tests": str((len(checks) if verdict else 1) + waived_count),
        "failures": str(sum(check.validity is Validity.INVALID for check in checks)),
        "errors": str(errors),
        "skipped": str(sum(map(_is_skipped, checks)) + waived_count),
        "time": f"{sum(check.seconds for check in checks):.3f}",
    }
    if manifest:
        # The schema's timestamp has no zone; ours is UTC.
        attributes["timestamp"] = manifest.started_at[:19]
    return _element("testsuite", **attributes)


def _properties(
    suite: ET.Element, run: RunDirectory, answers: RunAnswers, headline: Headline
) -> None:
    manifest = answers.manifest
    properties = ET.SubElement(suite, "properties")
    values = {"verdict": headline.standing.value, "run": str(run.root)}
    if manifest:
        values |= {
            **({"waived": "; ".join(manifest.waived)} if manifest.waived else {}),
            **manifest.tested,
            "title": manifest.title,
            "command": manifest.command,
        }
    if answers.verdict:
        values |= {
            f"cases.{check.check}": str(check.case_count) for check in answers.verdict.checks
        }
        if answers.verdict.service_level is not None:
            values |= service_properties(answers.verdict.service_level)
        values |= {
            f"finding.{number}": finding_words(finding)
            for number, finding in enumerate(answers.verdict.findings, start=1)
        }
        values |= kind_properties(answers.verdict)
        values |= window_properties(answers.verdict)
        values |= operation_properties(answers.verdict)
    for name, value in values.items():
        properties.append(_element("property", name=name, value=value))


def _missing_verdict(suite: ET.Element, headline: Headline) -> None:
    """Add an error as test case: a suite without a test case would be taken for a pass."""
    case = _element("testcase", classname="fencepost", name="run", time="0.000")
    message = " ".join((headline.sentence, *headline.reasons))
    case.append(_element("error", type=headline.standing.value, message=message))
    suite.append(case)


def _waived(manifest: Manifest) -> ET.Element:
    """Return a skipped test case: build servers show these, and properties rarely."""
    case = _element(
        "testcase", classname=f"fencepost.{manifest.scenario}", name="waived", time="0.000"
    )
    case.append(_element("skipped", message=waived_words(manifest).strip()))
    return case


def _case(suite: ET.Element, result: CheckResult, findings: Sequence[RunFinding]) -> None:
    case = _element(
        "testcase",
        classname=f"fencepost.{suite.get('name')}",
        name=result.check,
        time=f"{result.seconds:.3f}",
    )
    if result.validity is Validity.INVALID:
        failure = _element(
            "failure", type="invalid", message=_cause(result, findings) + result.reason
        )
        illegal = [example for example in result.examples if not example.allowed]
        failure.text = printable("\n".join(map(_told, illegal[:_DETAILS_MAX])))
        case.append(failure)
    elif _is_error(result):
        case.append(_element("error", type="unknown", message=result.reason))
    elif _is_skipped(result):
        message = _SKIPPED.get(result.validity, "")
        if result.follows_from:
            message = f"follows from {result.follows_from}: {result.reason}"
        elif result.reason:
            message = f"{result.validity.value}: {result.reason}"
        case.append(_element("skipped", message=message))
    if result.figures:
        output = ET.SubElement(case, "system-out")
        output.text = printable("\n".join(f"{k}={v:g}" for k, v in result.figures.items()))
    suite.append(case)


def _cause(result: CheckResult, findings: Sequence[RunFinding]) -> str:
    """Return the identities of the findings that the anomalies of this check belong to."""
    own = [one.identity for one in findings if one.check == result.check]
    others = [
        one.identity
        for one in findings
        if any(follows.check == result.check for follows in one.consequences)
    ]
    named = f"finding {', '.join(own)}; " if own else ""
    return named + (f"follows from {', '.join(others)}; " if others else "")


def _is_error(result: CheckResult) -> bool:
    """Return whether it is a doubt of its own; a consequence fails with what it follows from."""
    return result.validity is Validity.UNKNOWN and not result.follows_from


def _is_skipped(result: CheckResult) -> bool:
    return result.validity in _SKIPPED or bool(result.follows_from)


def _told(anomaly: Anomaly) -> str:
    """Return the sentence, and below it the facts, a line each."""
    facts = (f"  {line}" for line in evidence_lines(anomaly.proof))
    return "\n".join((anomaly.detail, *facts))


def _element(tag: str, **attributes: str) -> ET.Element:
    """Return an element whose text can stand in XML 1.0, whatever it came from."""
    return ET.Element(tag, {key: printable(value) for key, value in attributes.items()})
