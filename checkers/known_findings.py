"""Findings on released software that are known by name: what exactly is known, and its page.

A scenario names those that it has to reckon with on a release (`expect: [{known: […]}]`). The check
is made all the same, and its findings are counted and told. If each of them is what is known, the
answer is *known*, which makes no run invalid; with a single one that is not, it is invalid as ever.
What is known is narrow: facts of the proof, value by value, so that a rule is never given up for
the one case in which released software breaks it.

Decision 51 has the reasons.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fencepost.checkers.verdict import CheckResult, Validity

if TYPE_CHECKING:
    # Whoever reads a scenario needs the names alone, and not all that a proof is made of.
    from fencepost.checkers.anomaly import Anomaly


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFinding:
    """A finding that has a page of its own."""

    check: str
    page: str
    """The path of the page, from the root of the repository."""
    facts: Mapping[str, int | str]
    """The facts that the proof of each such anomaly has, by name."""

    def covers(self, anomaly: "Anomaly") -> bool:
        """Return whether the anomaly is one of these."""
        told = {fact.name: fact.value for fact in anomaly.proof.facts}
        return anomaly.check == self.check and self.facts.items() <= told.items()


KNOWN_FINDINGS: Final[Mapping[str, KnownFinding]] = MappingProxyType(
    {
        # Its request is refused; one that was granted would be another finding.
        "unregistered-leader": KnownFinding(
            check="refused-but-running",
            page="docs/findings/unregistered-leader.md",
            facts={
                "error": "DUPLICATE_BROKER_REGISTRATION",
                "api": "AlterPartition",
                "broker_epoch": -1,
                "answer": "STALE_BROKER_EPOCH",
            },
        ),
        # A request that names an epoch, and an old one, would be another finding.
        "epochless-join": KnownFinding(
            check="stale-epoch-join",
            page="docs/findings/epochless-join.md",
            facts={"api": "AlterPartition", "named_epoch": -1},
        ),
        # One that a controller had, and took up later, would be another finding.
        "late-registration": KnownFinding(
            check="incarnation-went-back",
            page="docs/findings/late-registration.md",
            facts={"was": "was on its way"},
        ),
    }
)
"""The findings that are known, by their names."""


def with_known(
    result: CheckResult, anomalies: "Iterable[Anomaly]", known: Iterable[str]
) -> CheckResult:
    """Return the answer; `known` if every anomaly that is not allowed is one of these findings.

    `anomalies`: those of this check, as far as they are spelled out. Where more were counted, the
    others may be anything.
    """
    mine = {
        name: KNOWN_FINDINGS[name] for name in known if KNOWN_FINDINGS[name].check == result.check
    }
    if result.validity is not Validity.INVALID or not mine:
        return result
    never = [one for one in anomalies if not one.allowed]
    others = [one for one in never if not any(name.covers(one) for name in mine.values())]
    if others:
        other = others[0]
        first = f"{len(others)} of them not {' or '.join(mine)}: {other.key}: {other.detail}"
        reason = f"{result.anomaly_count - result.allowed_count} found, {first}"
        examples = (other, *(one for one in result.examples if one != other))
        return replace(result, reason=reason, examples=examples)
    if len(never) < result.anomaly_count - result.allowed_count:
        return result
    pages = ", ".join(f"{name} ({one.page})" for name, one in mine.items())
    return replace(result, validity=Validity.KNOWN, reason=f"{len(never)} found, known as {pages}")
