"""The demands of a scenario on its runs; a run that does not meet them has proven nothing.

    require:
      faults: [kill, partition]        # kinds that have to take effect
      served: [partition]              # during which clients have to be served; default: all kinds
      windows: [AlterPartition]        # messages in whose windows a strike has to take effect
      judged: [lost-write]             # checks that have to have something to judge

Whatever of it is missing makes the run unknown. It speaks of the scenario as it stands: where a
flag lays other faults over it, or takes time from faults that are drawn, fewer are demanded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.scenario.validation import MappingReader, anomalies, known_words, mapping
from harness.scenario.yaml_file import Document
from history.failure import Mistakes, SpecError
from nemesis.messages import MESSAGES
from nemesis.verbs.registry import KINDS
from nemesis.words import did_you_mean, duration_s

__all__ = ["Requirement", "narrowed", "parse_requirement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """The faults that must take effect, those to serve clients through, and the checks to judge."""

    faults: tuple[str, ...] = ()
    served: tuple[str, ...] | None = None
    """The kinds during which clients must be served; None: each kind that takes effect."""
    windows: tuple[str, ...] = ()
    """The messages in the midst of which a strike must take effect."""
    judged: tuple[str, ...] = ()

    def as_data(self) -> dict[str, object]:
        """Return it as a scenario writes it."""
        served = {} if self.served is None else {"served": list(self.served)}
        windows = {"windows": list(self.windows)} if self.windows else {}
        return {"faults": list(self.faults), **served, **windows, "judged": list(self.judged)}


def parse_requirement(value: object) -> Requirement:
    """Return the entries of `require`.

    Raise SpecError with the paths to the words that do not exist.
    """
    read = MappingReader(mapping(value, example="{faults: [kill], judged: [lost-write]}"))
    read.refuse_unknown(["faults", "served", "windows", "judged"])
    found = Requirement(
        faults=read.at("faults", _kinds, otherwise=()),
        served=read.at("served", _kinds, otherwise=None),
        windows=read.at("windows", _messages, otherwise=()),
        judged=read.at("judged", _anomalies, otherwise=()),
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
    """Return the demands that remain after flags changed which faults there are, or their duration.

    `asked`: the kinds of the schedule as it now is; `windows`: the messages that it may hold.
    """
    there = {"faults": asked, "served": asked, "windows": windows}
    if _is_shortened(document):
        # What a shorter mix draws in its time is not known beforehand, nor what there will be to
        # judge. That some fault takes effect is demanded of every run.
        return Requirement()
    if not _is_laid_over(document):
        _refuse_unasked(requirement, there)
    return replace(
        requirement,
        **{
            key: tuple(word for word in words if word in known)
            for key, known in there.items()
            if (words := getattr(requirement, key)) is not None
        },
    )


def _is_shortened(document: Document) -> bool:
    stated = document.stated("time_limit")
    if "play" in document.data or ("time_limit",) not in document.flags or stated is None:
        return False
    return duration_s(document.data["time_limit"]) < duration_s(stated)


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
    return _words(value, KINDS, what="fault", example="kill")


def _messages(value: object) -> tuple[str, ...]:
    return _words(value, tuple(MESSAGES), what="message", example="AlterPartition")


def _anomalies(value: object) -> tuple[str, ...]:
    return _words(value, anomalies(), what="anomaly", example="lost-write")


def _words(value: object, known: Sequence[str], *, what: str, example: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise SpecError((), f"expected a list, e.g. [{example}]; found {value!r}")
    return known_words(value, known, what=what)
