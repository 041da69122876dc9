"""What an anomaly explains: findings that are known by name, and what follows from a proof."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from manifests import MANIFEST

from fencepost.checkers.anomaly import ANOMALIES, Anomaly
from fencepost.checkers.explained import explained
from fencepost.checkers.proof import Proof
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.history.manifest import Manifest, NotWhole

LACKING = "not whole 60 s after a fault was healed: broker-2 takes no part; and 122 more"
S = 1_000_000_000


def manifest(**given: Any) -> Manifest:
    return replace(MANIFEST, end_ns=900 * S, **given)


def not_whole(*broker_ids: int, at_s: int = 500, words: str = LACKING) -> NotWhole:
    return NotWhole(shortfall=words, time_ns=at_s * S, broker_ids=broker_ids)


def anomaly(check: str, **facts: Any) -> Anomaly:
    said = " ".join(f"{{{name}}}" for name in facts)
    return Anomaly(check=check, key="broker 2", allowed=False, proof=Proof.of(said, **facts))


def put_out(*, since_s: int = 400, until_s: int | None = None) -> Anomaly:
    until = {} if until_s is None else {"out_until": until_s * S}
    return anomaly("incarnation-went-back", out_broker_id=2, out_since=since_s * S, **until)


def judged(given: Manifest, *anomalies: Anomaly, reason: str | None = None) -> Verdict:
    """The verdict on a run with these shortfalls and anomalies, explained."""
    planned = CheckResult(
        check="as-planned",
        validity=Validity.UNKNOWN if given.shortfalls else Validity.VALID,
        reason="; ".join(given.shortfalls) if reason is None else reason,
    )
    checks = dict.fromkeys(one.check for one in anomalies)
    found = {name: [one for one in anomalies if one.check == name] for name in checks}
    results = [
        CheckResult(
            check=name,
            validity=Validity.INVALID,
            anomaly_count=len(several),
            reason=f"{len(several)} found",
            examples=tuple(several[:5]),
        )
        for name, several in found.items()
    ]
    held = CheckResult(check="lost-write", validity=Validity.VALID, case_count=9)
    tables = {
        name: pa.Table.from_pylist([one.row() for one in several], schema=ANOMALIES)
        for name, several in found.items()
    }
    return explained(Verdict.of([planned, held, *results]), given, tables)


def answer(verdict: Verdict, check: str) -> CheckResult:
    return next(one for one in verdict.checks if one.check == check)


OUT = manifest(shortfalls=(LACKING,), not_whole=(not_whole(2),))


def test_a_cluster_that_lacked_a_broker_that_an_anomaly_put_out_is_its_consequence() -> None:
    verdict = judged(OUT, put_out())
    planned = answer(verdict, "as-planned")
    assert planned.follows_from == "incarnation-went-back"
    cause = "(follows from incarnation-went-back: broker 2 was out from 400.000 s on)"
    assert planned.reason == f"{LACKING} {cause}"
    # It is told as such, and takes no answer away.
    assert planned.validity is Validity.UNKNOWN
    assert verdict.validity is Validity.INVALID


@pytest.mark.parametrize(
    ("given", "anomalies"),
    [
        (OUT, [put_out(since_s=501)]),
        (OUT, [put_out(until_s=499)]),
        (OUT, []),
        (replace(OUT, not_whole=(not_whole(2, 3),)), [put_out()]),
        (replace(OUT, not_whole=(not_whole(1),)), [put_out()]),
        (replace(OUT, not_whole=()), [put_out()]),
        (replace(OUT, not_whole=(not_whole(2, words="not whole 60 s after"),)), [put_out()]),
        (OUT, [replace(put_out(), allowed=True)]),
        (OUT, [anomaly("duplicate-id", out_broker_id=2, out_since=0)]),
    ],
    ids=[
        "out later",
        "heard again before",
        "no anomaly",
        "another broker lacks, too",
        "another broker",
        "something else lacks",
        "another shortfall",
        "legal",
        "a check that tells no outages",
    ],
)
def test_a_shortfall_that_no_anomaly_explains_remains_a_doubt(
    given: Manifest, anomalies: list[Anomaly]
) -> None:
    planned = answer(judged(given, *anomalies), "as-planned")
    assert (planned.validity, planned.follows_from) == (Validity.UNKNOWN, "")
    assert planned.reason == LACKING


def test_a_doubt_beside_a_consequence_remains_a_doubt() -> None:
    died = replace(OUT, shortfalls=(LACKING, "broker-3 died by itself at 7.0 s: why"))
    planned = answer(judged(died, put_out()), "as-planned")
    assert (planned.validity, planned.follows_from) == (Validity.UNKNOWN, "")
    assert "(follows from incarnation-went-back" in planned.reason
    cut = f"{LACKING}; the recording of producer-1 is cut short"
    planned = answer(judged(OUT, put_out(), reason=cut), "as-planned")
    assert (planned.validity, planned.follows_from) == (Validity.UNKNOWN, "")


KNOWN = manifest(known=("unregistered-leader",))
REFUSED = {
    "error": "DUPLICATE_BROKER_REGISTRATION",
    "api": "AlterPartition",
    "broker_epoch": -1,
    "answer": "STALE_BROKER_EPOCH",
}


def test_what_is_known_by_name_makes_no_run_invalid_and_is_told() -> None:
    verdict = judged(KNOWN, anomaly("refused-but-running", **REFUSED))
    result = answer(verdict, "refused-but-running")
    assert result.validity is Validity.KNOWN
    assert "unregistered-leader (docs/findings/unregistered-leader.md)" in result.reason
    assert (verdict.validity, verdict.exit_code) == (Validity.VALID, 0)
    assert judged(manifest(), anomaly("refused-but-running", **REFUSED)).exit_code == 1


@pytest.mark.parametrize(
    "other",
    [{"answer": "NONE"}, {"api": "BrokerHeartbeat"}, {"broker_epoch": 7}, {"error": "UNKNOWN"}],
)
def test_one_finding_that_is_not_what_is_known_is_invalid_and_comes_first(
    other: dict[str, Any],
) -> None:
    of_known = anomaly("refused-but-running", **REFUSED)
    of_other = anomaly("refused-but-running", **{**REFUSED, **other})
    result = answer(judged(KNOWN, of_known, of_other), "refused-but-running")
    assert result.validity is Validity.INVALID
    assert result.reason.startswith("2 found, 1 of them not unregistered-leader: broker 2: ")
    assert result.examples[0] == of_other


def test_findings_of_another_check_are_not_known() -> None:
    verdict = judged(KNOWN, anomaly("duplicate-id", **REFUSED))
    assert verdict.validity is Validity.INVALID


def test_findings_that_are_not_spelled_out_may_be_anything() -> None:
    one = anomaly("refused-but-running", **REFUSED)
    result = CheckResult(
        check="refused-but-running", validity=Validity.INVALID, anomaly_count=2, examples=(one,)
    )
    table = pa.Table.from_pylist([one.row()], schema=ANOMALIES)
    verdict = explained(Verdict.of([result]), KNOWN, {"refused-but-running": table})
    assert verdict.validity is Validity.INVALID


def test_a_run_of_nothing_but_what_is_known_proves_nothing() -> None:
    one = anomaly("refused-but-running", **REFUSED)
    result = CheckResult(check=one.check, validity=Validity.INVALID, anomaly_count=1)
    table = pa.Table.from_pylist([one.row()], schema=ANOMALIES)
    verdict = explained(Verdict.of([result]), KNOWN, {one.check: table})
    assert verdict.validity is Validity.UNKNOWN
