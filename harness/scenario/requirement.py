"""The demands of a scenario on its runs: the words under `require`.

    require:
      faults: [kill, partition]        # kinds that have to take effect
      served: [partition]              # during which clients have to be served; default: all kinds
      windows: [AlterPartition]        # messages in whose windows a strike has to take effect
      judged: [lost-write]             # checks that have to have something to judge
      unavailable_max: 10s             # the longest silence of a key that is in order
      p99_max: 500ms                   # the p99 of latency outside faults that is in order
      client_duplicates_max: 0         # records that clients may send again under another epoch
      fatal_errors_max: 0              # transactions that may end their client for good

A run that does not meet the demands has proven nothing: whatever is missing makes it unknown. The
last four are bounds instead (`checkers.service_level` says of what the first two are): a run that
exceeds one is invalid (`long-silence`, `slow-p99`, `client-duplicate`, `fatal-error`). All stay in
force under a shorter `--time-limit`. Where a flag lays other faults over the scenario, fewer are
demanded; `--no-require` waives all. What is waived is told before the verdict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fencepost.harness.scenario.validation import MappingReader, anomalies, known_words, mapping
from fencepost.harness.scenario.yaml_file import Document
from fencepost.history.failure import Mistakes, SpecError
from fencepost.nemesis.messages import MESSAGES
from fencepost.nemesis.verbs.registry import KINDS as FAULT_KINDS
from fencepost.nemesis.words import did_you_mean, duration_s, duration_text

NO_REQUIRE: Final = "--no-require"
"""The flag by which a user does without the demands of a scenario."""
_COUNTS: Final = ("client_duplicates_max", "fatal_errors_max")
_WAIVING: Final = ("nemesis", "play", "require", "trial")
"""The parts of a scenario by whose flags demands are waived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """The faults that must take effect, those to serve clients through, and the checks to judge."""

    faults: tuple[str, ...] = ()
    served: tuple[str, ...] | None = None
    """The kinds during which clients must be served; None: each kind that takes effect."""
    windows: tuple[str, ...] = ()
    """The messages in the midst of which a strike must take effect."""
    judged: tuple[str, ...] = ()
    unavailable_max_s: float | None = None
    """The bound on each silence of a key (`checkers.service_level`); None: none."""
    p99_max_s: float | None = None
    """The bound on the p99 of latency outside faults; None: none."""
    client_duplicates_max: int | None = None
    """The bound on the records that clients send again under another epoch; None: none."""
    fatal_errors_max: int | None = None
    """The bound on the transactions with an error that ends their client; None: none."""

    def as_data(self) -> dict[str, object]:
        """Return it as a scenario writes it."""
        served = {} if self.served is None else {"served": list(self.served)}
        windows = {"windows": list(self.windows)} if self.windows else {}
        lists = {"faults": list(self.faults), **served, **windows, "judged": list(self.judged)}
        return lists | dict(self._stated)

    @property
    def demands(self) -> Mapping[str, str]:
        """What it demands of a run, by key, in words: who is served during faults is no demand."""
        lists = {"faults": self.faults, "windows": self.windows, "judged": self.judged}
        listed = {key: ", ".join(words) for key, words in lists.items() if words}
        return listed | {key: str(bound) for key, bound in self._stated.items()}

    @property
    def bounds(self) -> Mapping[str, float]:
        """The bounds as a manifest has them (`Manifest.required_bounds`)."""
        found = {"unavailable_max_s": self.unavailable_max_s}
        found["p99_max_ms"] = None if self.p99_max_s is None else 1e3 * self.p99_max_s
        found |= {f"{name}_count": bound for name, bound in self._counts.items()}
        return {name: bound for name, bound in found.items() if bound is not None}

    @property
    def _stated(self) -> Mapping[str, str | int]:
        """The bounds as a scenario writes them."""
        durations = {"unavailable_max": self.unavailable_max_s, "p99_max": self.p99_max_s}
        texts = {key: duration_text(bound) for key, bound in durations.items() if bound is not None}
        return texts | {key: bound for key, bound in self._counts.items() if bound is not None}

    @property
    def _counts(self) -> Mapping[str, int | None]:
        return {name: getattr(self, name) for name in _COUNTS}


def parse_requirement(value: object) -> Requirement:
    """Return the entries of `require`.

    Raise SpecError with the paths to the words that do not exist.
    """
    read = MappingReader(mapping(value, example="{faults: [kill], judged: [lost-write]}"))
    read.refuse_unknown(
        ["faults", "served", "windows", "judged", "unavailable_max", "p99_max", *_COUNTS]
    )
    found = Requirement(
        faults=read.at("faults", _kinds, otherwise=()),
        served=read.at("served", _kinds, otherwise=None),
        windows=read.at("windows", _messages, otherwise=()),
        judged=read.at("judged", _anomalies, otherwise=()),
        unavailable_max_s=read.at("unavailable_max", _bound, otherwise=None),
        p99_max_s=read.at("p99_max", _bound, otherwise=None),
        **{name: read.at(name, _count, otherwise=None) for name in _COUNTS},
    )
    read.mistakes.refuse()
    return found


def narrowed(
    document: Document,
    requirement: Requirement,
    *,
    asked: Sequence[str],
    windows: Sequence[str] = (),
) -> Requirement:
    """Return the demands that remain after flags changed which faults there are.

    `asked`: the kinds of the schedule as it now is; `windows`: the messages that it may hold.
    """
    there = {"faults": asked, "served": asked, "windows": windows}
    if not _is_laid_over(document):
        _refuse_unasked(requirement, there)
    remaining = {
        key: tuple(word for word in words if word in known)
        for key, known in there.items()
        if (words := getattr(requirement, key)) is not None
    }
    return replace(
        requirement,
        faults=remaining["faults"],
        served=remaining.get("served"),
        windows=remaining["windows"],
    )


def is_shortened(document: Document) -> bool:
    """Return whether a flag gives the scenario less time than its file does."""
    stated = document.stated("time_limit")
    if ("time_limit",) not in document.flags or stated is None:
        return False
    return duration_s(document.data["time_limit"]) < duration_s(stated)


def without_demands(data: Mapping[str, Any]) -> dict[str, object]:
    """Return what is left of `require` without any demand: during which faults none is served."""
    match data.get("require"):
        case {"served": served}:
            return {"served": served}
    return {}


def waived(document: Document, requirement: Requirement) -> tuple[str, ...]:
    """Return the demands of the file that are not among these, a sentence each.

    Who is served during faults that are not begun is no demand.
    """
    if not document.flags:
        return ()
    try:
        stated = parse_requirement(document.stated("require"))
    except SpecError as error:
        raise error.below("require") from None
    flags = sorted({flag for path, flag in document.flags.items() if path[0] in _WAIVING})
    found = []
    for key in ("faults", "windows", "judged"):
        gone = [word for word in getattr(stated, key) if word not in getattr(requirement, key)]
        if gone:
            found.append(f"{key} {', '.join(gone)} ({', '.join(flags)})")
    for key in stated.bounds.keys() - requirement.bounds.keys():
        word = key.rpartition("_")[0]
        found.append(f"{word} {stated.demands[word]} ({', '.join(flags)})")
    return tuple(found)


def _is_laid_over(document: Document) -> bool:
    return any(path[0] in ("nemesis", "play") for path in document.flags)


def _refuse_unasked(requirement: Requirement, there: Mapping[str, Sequence[str]]) -> None:
    """Raise SpecError for the words that are demanded of a schedule without them."""
    mistakes = Mistakes()
    for key, known in there.items():
        for index, word in enumerate(getattr(requirement, key) or ()):
            if word not in known:
                never = "held" if key == "windows" else "begun"
                instead = did_you_mean(word, known) if known else "nothing here waits for a message"
                mistakes.note((key, index), f"{word!r} is never {never} here; {instead}")
    mistakes.refuse()


def _kinds(value: object) -> tuple[str, ...]:
    return _words(value, FAULT_KINDS, what="fault", example="kill")


def _bound(value: object) -> float:
    if not (seconds := duration_s(value)):
        raise SpecError((), f"expected a duration above zero, e.g. 10s or 500ms; found {value!r}")
    return seconds


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise SpecError((), f"expected a number from 0 on; found {value!r}")
    return value


def _messages(value: object) -> tuple[str, ...]:
    return _words(value, tuple(MESSAGES), what="message", example="AlterPartition")


def _anomalies(value: object) -> tuple[str, ...]:
    return _words(value, anomalies(), what="anomaly", example="lost-write")


def _words(value: object, known: Sequence[str], *, what: str, example: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise SpecError((), f"expected a list, e.g. [{example}]; found {value!r}")
    return known_words(value, known, what=what)
