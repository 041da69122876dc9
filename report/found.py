"""The findings of a run for people: in one line, and with the proofs of each of their checks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fencepost.checkers.verdict import RunFinding
from fencepost.report.notation import integer
from fencepost.report.proofs import GroupOfProofs


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundProofs:
    """A finding, and the proofs of its checks: of the cause first, then of what follows."""

    finding: RunFinding | None
    """None: proofs that belong to none, as those of what is allowed."""
    groups: tuple[GroupOfProofs, ...]


def finding_words(finding: RunFinding) -> str:
    """Return the finding in one line: identity, title, how many, and what follows from it."""
    count = f" ({integer(finding.count)})" if finding.count > 1 else ""
    known = f"; known as {finding.known}" if finding.known else ""
    told = ", ".join(f"{one.check} ({integer(one.count)})" for one in finding.consequences)
    follows = f"; from it follow {told}" if told else ""
    return f"{finding.identity}: {finding.title}{count}{known}{follows}"


def proofs_by_finding(
    findings: Sequence[RunFinding], groups: Iterable[GroupOfProofs]
) -> tuple[FoundProofs, ...]:
    """Return the groups in the order of the findings, each check under the first that has it."""
    left = {group.check: group for group in groups}
    told = []
    for finding in findings:
        checks = (finding.check, *(one.check for one in finding.consequences))
        mine = tuple(left.pop(check) for check in checks if check in left)
        told.append(FoundProofs(finding=finding, groups=mine))
    if left:
        told.append(FoundProofs(finding=None, groups=tuple(left.values())))
    return tuple(told)
