"""Known issues: findings for which a gate is suspended until a date, in a file of the user's own.

    known:
      - finding: kip-903/stale-epoch-join
        issue: KAFKA-14139
        reason: fixed in 3.5; we move in March
        until: 2027-03-31
        rate_max: 0.5
        releases: [3.4.1]

`finding` is an identity, or the first parts of one: at least scenario and check. What is suspended
still runs, and is reported. A date that is past, or that cannot be read, lapses: a known issue that
nobody looks after must not hold a gate open. `rate_max`: a finding that surely shows in more runs
than this gates again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from fencepost.harness.scenario.yaml_file import Document, load_document
from fencepost.history.failure import Mistakes, SpecError
from fencepost.nemesis.words import did_you_mean

_REQUIRED: Final = ("finding", "issue", "reason", "until")
_KEYS: Final = (*_REQUIRED, "rate_max", "releases")
_TOP: Final = "a file of known issues is a mapping, e.g. 'known: []'"
_PARTS_MIN: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownIssue:
    """One entry of the file."""

    finding: str
    issue: str
    reason: str
    until: date | None
    """None: what stands there is no date."""
    until_text: str
    rate_max: float | None
    releases: tuple[str, ...]
    """Empty: all."""
    place: str
    """`file:line`."""

    def covers(self, identity: str, release: str) -> bool:
        """Return whether it is about a finding on a release."""
        same = identity == self.finding or identity.startswith(f"{self.finding}/")
        return same and (not self.releases or release in self.releases)

    def lapsed(self, today: date) -> str:
        """Return why it suspends nothing any more, or "". The last day itself counts."""
        if self.until is None:
            return f"until {self.until_text!r} is no date (2027-03-31)"
        return f"it was known until {self.until}" if today > self.until else ""


def read_known_issues(path: Path) -> tuple[KnownIssue, ...]:
    """Return the entries. Raises UsageError with a line for each mistake, with file and line."""
    document = load_document(path, expected=_TOP)
    mistakes = Mistakes()
    for key in document.data.keys() - {"known"}:
        mistakes.note((str(key),), f"unknown key; {did_you_mean(str(key), ['known'])}")
    entries = document.data.get("known", [])
    if not isinstance(entries, list):
        mistakes.note(("known",), "expected a list of known issues")
        entries = []
    for place, entry in enumerate(entries):
        for path_, wrong in _mistakes(entry):
            mistakes.note(("known", place, *path_), wrong)
    try:
        mistakes.refuse()
    except SpecError as error:
        raise document.error(error) from None
    return tuple(_issue(entry, document, place) for place, entry in enumerate(entries))


def entry_for(finding: str) -> str:
    """Return an entry to paste into the file, with what only a person knows left to fill in."""
    return (
        f"  - finding: {finding}\n"
        "    issue: TODO\n"
        "    reason: TODO\n"
        "    until: TODO  # a date, 2027-03-31"
    )


def _mistakes(entry: object) -> Iterator[tuple[tuple[str, ...], str]]:
    if not isinstance(entry, Mapping):
        yield (), f"expected the keys {', '.join(_REQUIRED)}"
        return
    for key in entry:
        if key not in _KEYS:
            yield (str(key),), f"unknown key; {did_you_mean(str(key), _KEYS)}"
    for key in _REQUIRED:
        if key not in entry:
            yield (), f"{key} is not there; required are {', '.join(_REQUIRED)}"
        elif key != "until" and not (isinstance(entry[key], str) and entry[key].strip()):
            yield (key,), "expected words"
    finding = entry.get("finding")
    if isinstance(finding, str) and len(list(filter(None, finding.split("/")))) < _PARTS_MIN:
        yield ("finding",), "expected scenario and check at least, e.g. kip-903/stale-epoch-join"
    rate = entry.get("rate_max")
    right = isinstance(rate, int | float) and not isinstance(rate, bool) and 0 <= rate <= 1
    if rate is not None and not right:
        yield ("rate_max",), "expected a share of the runs, 0 to 1"
    releases = entry.get("releases", [])
    if not isinstance(releases, list) or not all(isinstance(one, str) for one in releases):
        yield ("releases",), "expected a list of releases, each in quotes if it reads as a number"


def _issue(entry: Mapping[str, Any], document: Document, place: int) -> KnownIssue:
    until = str(entry["until"])
    try:
        day = date.fromisoformat(until)
    except ValueError:
        day = None
    return KnownIssue(
        finding=entry["finding"].strip("/"),
        issue=entry["issue"],
        reason=entry["reason"],
        until=day,
        until_text=until,
        rate_max=None if entry.get("rate_max") is None else float(entry["rate_max"]),
        releases=tuple(entry.get("releases", ())),
        place=document.place(("known", place)),
    )
