"""The outcome that a scenario expects of a release: valid, or invalid with named anomalies.

    expect:
      - {kafka: "<2.7", refused: "its brokers send no AlterPartition"}
      - {kafka: "<3.5", invalid: [lost-write], tried: [3.4.1]}
      - {kafka: ">=3.5", valid: true, tried: [3.5.2, 4.3.1]}

`refused` says why the scenario is no run of these releases: what it is about is not in them.

`known` beside `valid` names findings on these releases that have a page of their own
(`checkers.known_findings`): they make no run invalid, and every other finding does.
The first entry that fits the release counts; a run on a release that none fits has no expectation.
An entry with `level` in the place of `kafka` is about clusters of our own at a metadata.version of
theirs, and fits no release.
`tried` names the releases that an entry rests on: `fencepost reproduce` runs on all of these.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from fencepost.checkers.known_findings import KNOWN_FINDINGS
from fencepost.checkers.verdict import Validity, Verdict
from fencepost.harness.scenario.validation import MappingReader, anomalies, known_words, mapping
from fencepost.history.failure import Mistakes, SpecError
from fencepost.history.manifest import Manifest

_OUTCOMES: Final = ("valid", "invalid", "refused")
_KEYS: Final = ("kafka", "release", "level", *_OUTCOMES, "known", "tried")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """An expectation: on these releases, this validity, with at least these anomalies."""

    releases: SpecifierSet
    """The releases of Kafka; an entry with levels says nothing of them."""
    validity: Validity
    """UNKNOWN where it is refused."""
    refused: str = ""
    """The reason why the scenario cannot be run on these; "": it can be."""
    levels: SpecifierSet | None = None
    """The metadata.versions of clusters of our own that it is about; None: it is about releases."""
    anomalies: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    """The findings on Kafka, by name, that a run has to reckon with: `checkers.known_findings`."""
    tried: tuple[str, ...] = ()
    """The releases that stand for all of them in a track record."""


def parse_expectations(value: object) -> tuple[Expectation, ...]:
    """Return the entries of `expect`; raise SpecError with the indices of the wrong ones."""
    if not isinstance(value, list):
        raise SpecError((), "expected a list, e.g. [{kafka: '>=3.5', valid: true}]")
    found, mistakes = [], Mistakes()
    for index, item in enumerate(value):
        with mistakes.below(index):
            found.append(_parse_one(mapping(item, example="{valid: true}")))
    mistakes.refuse()
    for index, expectation in enumerate(found):
        for place, release in enumerate(expectation.tried):
            if expectation_for(tuple(found), release=release) is not expectation:
                mistakes.note(
                    (index, "tried", place),
                    f"{release} is not in the range of releases of this entry",
                )
    mistakes.refuse()
    return tuple(found)


def tried_releases(expectations: tuple[Expectation, ...]) -> tuple[str, ...]:
    """Return the releases that the entries name, in their order."""
    return tuple(release for expectation in expectations for release in expectation.tried)


def expectation_for(
    expectations: tuple[Expectation, ...], *, release: str, level: int | None = None
) -> Expectation | None:
    """Return the first entry that fits the release, or the level of a cluster of our own.

    A build without a version of its own fits only entries without a `kafka` key.
    """
    try:
        version: Version | None = Version(release.replace("-SNAPSHOT", ".dev0"))
    except InvalidVersion:
        version = None
    for expectation in expectations:
        if expectation.levels is not None:
            if level is not None and expectation.levels.contains(str(level)):
                return expectation
            continue
        anywhere = str(expectation.releases) == ""
        if anywhere or (version and expectation.releases.contains(version, prereleases=True)):
            return expectation
    return None


def is_met(expectation: Expectation, verdict: Verdict) -> bool:
    """Return whether the verdict is what was expected, with every anomaly named."""
    illegal = {check.check for check in verdict.checks if check.validity is Validity.INVALID}
    return verdict.validity is expectation.validity and set(expectation.anomalies) <= illegal


def expected_findings(manifest: Manifest, verdict: Verdict) -> tuple[str, ...]:
    """Return the identities of the findings that the scenario of a run expects of its release.

    They are those of the anomalies that it names; if none bears such a name, the causes from which
    one of these follows. Any other cause, though it does the same harm, is not expected. None is,
    if not all of these anomalies were found, or the user ended the run early.
    """
    named = set(manifest.expected)
    illegal = {check.check for check in verdict.checks if check.validity is Validity.INVALID}
    if manifest.ended_early or not named <= illegal:
        return ()
    own = [one for one in verdict.findings if one.check in named]
    causes = (
        one
        for one in verdict.findings
        if not named.isdisjoint(consequence.check for consequence in one.consequences)
    )
    return tuple(one.identity for one in own or causes)


def known_to(expectation: Expectation | None, *, level: int | None) -> tuple[str, ...]:
    """Return the findings that a run reckons with.

    `level`: that of a cluster of our own, to which nothing is known: it has no bug but those of the
    rules that are switched off.
    """
    return () if expectation is None or level is not None else expectation.known


def _parse_one(data: Mapping[str, object]) -> Expectation:
    read = MappingReader(data)
    unknown = read.refuse_unknown(_KEYS)
    outcomes = [key for key in _OUTCOMES if key in data]
    if not unknown and len(outcomes) != 1:
        why = "expected 'valid: true', 'invalid: [anomaly, …]' or 'refused: \"the reason\"'"
        read.mistakes.note((), why)
    if "refused" in outcomes and "tried" in data:
        read.mistakes.note(("tried",), "an entry with 'refused' has no 'tried'")
    if "known" in data and "valid" not in data:
        read.mistakes.note(("known",), "'known' needs 'valid: true' beside it")
    of_release = "release" if "release" in data else "kafka"
    if "level" in data and not data.keys().isdisjoint((of_release, "tried", "known")):
        why = "'level' is for reference clusters: it excludes 'kafka', 'tried' and 'known'"
        read.mistakes.note(("level",), why)
    found = Expectation(
        releases=read.at(of_release, _range, otherwise=SpecifierSet()),
        levels=read.at("level", _range, otherwise=None),
        validity=read.at(
            "valid",
            _valid,
            otherwise=Validity.UNKNOWN if "refused" in data else Validity.INVALID,
        ),
        refused=read.at("refused", _reason, otherwise=""),
        anomalies=read.at("invalid", _anomalies, otherwise=()),
        known=read.at("known", _known, otherwise=()),
        tried=read.at("tried", _tried, otherwise=()),
    )
    read.mistakes.refuse()
    return found


def _valid(value: object) -> Validity:
    if value is not True:
        raise SpecError((), "write 'valid: true', or 'invalid: [anomaly, …]'")
    return Validity.VALID


def _reason(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise SpecError(
            (), f'expected the reason, e.g. "it has no AlterPartition"; found {value!r}'
        )
    return value


def _range(value: object) -> SpecifierSet:
    try:
        return SpecifierSet(str(value))
    except InvalidSpecifier:
        raise SpecError(
            (), f'{value!r} is not a range of versions; write ">=3.5" or "<4,>=3"'
        ) from None


def _tried(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise SpecError((), f"expected a list of releases, e.g. [3.4.1]; found {value!r}")
    mistakes = Mistakes()
    for index, release in enumerate(value):
        if not isinstance(release, str):
            mistakes.note((index,), f"{release!r} is a number; quote it: '{release}'")
    mistakes.refuse()
    return tuple(value)


def _anomalies(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise SpecError((), "expected a list of anomalies, e.g. [lost-write]")
    return known_words(value, anomalies(), what="anomaly")


def _known(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise SpecError((), "expected a list of findings, e.g. [unregistered-leader]")
    return known_words(value, tuple(KNOWN_FINDINGS), what="finding")
