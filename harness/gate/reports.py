"""A decision as data: JSON, JUnit and CTRF.

In JUnit and CTRF a finding is a test case: it fails if it gates, is skipped with the reason if it
is suspended or only not seen, and passes if it is resolved. Runs without an answer are errors.
"""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from fencepost.harness.gate.called import FindingCall
from fencepost.harness.gate.decision import GateDecision, GatedFinding
from fencepost.harness.gate.nights import NightVerdict
from fencepost.harness.gate.words import called_words, headline, standing
from fencepost.report.notation import printable

_TOOL: Final = "fencepost gate"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    suite: str
    name: str
    status: str
    """Of CTRF: passed, failed, skipped or other (without an answer)."""
    message: str


def as_json_data(decision: GateDecision) -> dict[str, Any]:
    """Return the decision as JSON data."""
    return {
        "night": decision.night.label,
        "against": list(decision.against),
        "exit_code": decision.exit_code,
        "headline": headline(decision),
        "findings": [_finding(one) for one in decision.judgements],
        "doubts": [asdict(one) for one in decision.doubts],
        "lacking": list(decision.lacking),
        "warnings": list(decision.warnings),
    }


def junit(decision: GateDecision) -> bytes:
    """Return the JUnit file: a suite a night."""
    cases = list(_cases(decision))
    statuses = [case.status for case in cases]
    root = ET.Element("testsuites")
    suite = ET.SubElement(
        root,
        "testsuite",
        name=printable(f"fencepost gate {decision.night.name}"),
        tests=str(len(cases)),
        failures=str(statuses.count("failed")),
        errors=str(statuses.count("other")),
        skipped=str(statuses.count("skipped")),
        time="0",
    )
    tags = {"failed": "failure", "other": "error", "skipped": "skipped"}
    for case in cases:
        shown = ET.SubElement(
            suite,
            "testcase",
            classname=printable(f"fencepost.gate.{case.suite}"),
            name=printable(case.name),
            time="0",
        )
        if case.status in tags:
            ET.SubElement(shown, tags[case.status], message=printable(case.message))
    ET.indent(root)
    content: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def ctrf(decision: GateDecision) -> bytes:
    """Return the report in the Common Test Report Format, version 0.0.0 of its schema."""
    cases = list(_cases(decision))
    start_ms = _ms(decision.night.started_at)
    counts = {
        status: sum(case.status == status for case in cases)
        for status in ("passed", "failed", "pending", "skipped", "other")
    }
    tests = [
        {
            "name": case.name,
            "suite": [case.suite],
            "status": case.status,
            "duration": 0,
            "message": case.message,
        }
        for case in cases
    ]
    summary = {"tests": len(cases), **counts, "start": start_ms, "stop": start_ms}
    results = {"tool": {"name": _TOOL}, "summary": summary, "tests": tests}
    content = {"reportFormat": "CTRF", "specVersion": "0.0.0", "results": results}
    return (json.dumps(content, indent=2) + "\n").encode()


def _cases(decision: GateDecision) -> Iterator[_Case]:
    for one in decision.judgements:
        status = "skipped"
        if one.gates:
            status = "failed"
        elif one.found.call is FindingCall.RESOLVED:
            status = "passed"
        message = called_words(one.found) + standing(one)
        yield _Case(
            suite=one.found.subject.words,
            name=one.found.identity,
            status=status,
            message=message,
        )
    for doubt in decision.doubts:
        name = "runs that failed" if doubt.verdict is NightVerdict.FAILED else "unknown runs"
        message = f"{doubt.count} of {doubt.runs}: {doubt.reason}"
        yield _Case(suite=doubt.subject.words, name=name, status="other", message=message)
    for reason in decision.lacking:
        yield _Case(suite="night", name="not enough", status="other", message=reason)
    if not decision.gating and not decision.doubts and not decision.lacking:
        # A suite without a test case would be taken for a night that was not looked at.
        yield _Case(suite="night", name="gate", status="passed", message=headline(decision))


def _finding(one: GatedFinding) -> dict[str, Any]:
    told = asdict(one.found)
    return {**told, "gates": one.gates, "suspended": one.suspended, "lapsed": one.lapsed}


def _ms(iso: str) -> int:
    try:
        return int(datetime.fromisoformat(iso).timestamp() * 1000)
    except ValueError:
        return 0
