"""One answer per check from the findings of keys and files.

Invalid if any key breaks the rule; else unknown if any key, file or job did not answer or could not
be called valid; else valid. A check is valid only if every file said that it was read to its end.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.anomaly import ANOMALIES, Anomaly, anomalies_of
from fencepost.checkers.entry import CatalogueEntry, Kind
from fencepost.checkers.verdict import CheckResult, Validity, reasons_listed

_EXAMPLES_MAX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAnswers:
    """The answers of the files of records about themselves."""

    record_count: int
    unreadable: tuple[str, ...]
    """The reasons why some files could not be read or did not answer."""
    seconds: float


def file_answers(findings: pa.Table, *, paths: Iterable[str]) -> FileAnswers:
    """Return the rows of the files themselves, of a table of FINDINGS; one of `paths` each."""
    rows = findings.filter(pc.is_null(findings["check"])).to_pylist()
    silent = sorted(set(paths) - {row["path"] for row in rows})
    unreadable = [row["unknown"] for row in rows if row["unknown"]]
    return FileAnswers(
        record_count=sum(row["record_count"] for row in rows),
        unreadable=(*unreadable, *(f"{path} was not answered for" for path in silent)),
        seconds=sum(row["seconds"] for row in rows),
    )


def anomalies_found(check: str, findings: pa.Table) -> pa.Table:
    """Return ANOMALIES of a check, from a table of FINDINGS: by key, those never allowed first."""
    mine = findings.filter(pc.equal(findings["check"], check)).sort_by("key")
    rows = [
        {"check": check, "key": row["key"], **anomaly}
        for row in mine.select(["key", "anomalies"]).to_pylist()
        for anomaly in row["anomalies"]
    ]
    return pa.Table.from_pylist(rows, schema=ANOMALIES)


def result_of(
    entry: CatalogueEntry,
    findings: pa.Table,
    *,
    files: FileAnswers,
    broken: frozenset[str],
    died: str,
) -> CheckResult:
    """Return the answer of the check of keys of this entry.

    `broken`: assumptions about the run that do not hold; `died`: why its job did not answer, or "".
    """
    check = entry.name
    mine = findings.filter(pc.equal(findings["check"], check)).sort_by("key")
    keys = mine.drop_columns(["path", "check", "record_count", "anomalies"]).to_pylist()
    never = sum(row["never_count"] for row in keys)
    allowed = sum(row["allowed_count"] for row in keys)
    examples = _examples(check, mine)
    wrong = _violation(keys, never=never, examples=examples)
    # A key of several slices may be in doubt in each, for one reason.
    unsure = {(row["key"], row["unknown"]): row["unknown"] for row in keys if row["unknown"]}
    unknown = reasons_listed([*filter(None, [died]), *files.unreadable, *unsure.values()])
    validity, reason = _answer(entry, wrong=wrong, unknown=unknown, broken=broken)
    return CheckResult(
        check=check,
        validity=validity,
        case_count=sum(row["case_count"] for row in keys),
        anomaly_count=never + allowed,
        allowed_count=allowed,
        reason=reason,
        figures={
            "keys_count": len({row["key"] for row in keys}),
            "keys_unknown_count": len({key for key, _ in unsure}),
        },
        seconds=sum(row["seconds"] for row in keys),
        examples=examples,
    )


def _answer(
    entry: CatalogueEntry, *, wrong: str, unknown: str, broken: frozenset[str]
) -> tuple[Validity, str]:
    lost = [name for name in entry.rests_on if name in broken]
    if lost:
        useless = f"; what was found proves nothing: {wrong}" if wrong else ""
        return Validity.UNKNOWN, f"it rests on {' and '.join(lost)}, which fails{useless}"
    if wrong and entry.kind is Kind.ANOMALY:
        return Validity.INVALID, wrong
    # A broken assumption of a key counts as unknown, whatever else is.
    reason = wrong or unknown
    return (Validity.UNKNOWN, reason) if reason else (Validity.VALID, "")


def _violation(
    keys: Sequence[Mapping[str, object]], *, never: int, examples: Sequence[Anomaly]
) -> str:
    if not never:
        return ""
    bad = len({row["key"] for row in keys if row["never_count"]})
    found = f"{never} found" if never > 1 else "1 found"
    first = f": {examples[0].key}: {examples[0].detail}" if examples else ""
    return f"{found}, on {bad} of {len({row['key'] for row in keys})} keys{first}"


def _examples(check: str, findings: pa.Table) -> tuple[Anomaly, ...]:
    """Return the first few anomalies of all keys: never allowed first, then the shortest proofs."""
    heads = pc.list_slice(findings["anomalies"], 0, _EXAMPLES_MAX).to_pylist()
    rows = [
        {"check": check, "key": key, **anomaly}
        for key, head in zip(findings["key"].to_pylist(), heads, strict=True)
        for anomaly in head
    ]
    few = list(anomalies_of(pa.Table.from_pylist(rows, schema=ANOMALIES)))
    few.sort(key=lambda one: (one.allowed, len(one.operations), one.operations))
    return tuple(few[:_EXAMPLES_MAX])
