"""The words under `nemesis`: which faults a mix draws, whom they hit, how often and how long."""

from typing import Final

from clusters.stage import Stage
from harness.scenario.validation import MappingReader, build, known_words, mapping, span_s
from history.failure import Mistakes, SpecError
from nemesis.mix import MixSpec
from nemesis.targets import parse_target
from nemesis.verbs.registry import EPISODES

__all__ = ["parse_mix"]

_FLAGS: Final[tuple[str, ...]] = ("overlap", "rounds")


def parse_mix(value: object, stage: Stage) -> MixSpec:
    """Return the spec of a mix; raise SpecError with the paths to the words that cannot be."""
    read = MappingReader(mapping(value, example="{faults: [kill, pause], gap: [2s, 5s]}"))
    read.refuse_unknown(["faults", "targets", "gap", "duration", "down", *_FLAGS])
    default = MixSpec()
    found: dict[str, object] = {
        "faults": read.at("faults", _faults, otherwise=default.faults),
        "targets": read.at("targets", lambda v: _targets(v, stage), otherwise=default.targets),
        "gap_s": read.at("gap", span_s, otherwise=default.gap_s),
        "duration_s": read.at("duration", span_s, otherwise=default.duration_s),
        "down": read.at("down", lambda value: _budget(value, stage), otherwise={}),
        **{key: read.data[key] for key in _FLAGS if key in read.data},
    }
    return read.mistakes.refuse_after(lambda: build(MixSpec, found))


def _faults(value: object) -> tuple[str, ...]:
    return known_words(_words(value), tuple(EPISODES), what="fault")


def _targets(value: object, stage: Stage) -> tuple[str, ...]:
    targets, mistakes = _words(value), Mistakes()
    for index, target in enumerate(targets):
        if target in ("leader", "isr follower"):
            continue  # of any key
        try:
            parse_target(target, nodes=stage.nodes, keys=stage.keys)
        except SpecError as error:
            found = f"{error.message}; a mix also knows 'leader', 'isr follower'"
            mistakes.note((index,), found)
    mistakes.refuse()
    return targets


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not value:
        raise SpecError((), f"expected a list of words, found {value!r}")
    return tuple(map(str, value))


def _budget(value: object, stage: Stage) -> dict[str, int]:
    read = MappingReader(mapping(value, example="{brokers: 1, controllers: 1}"))
    roles = {f"{role.name}s": role.name for role in stage.roles}
    read.refuse_unknown(list(roles))
    found = {
        role: read.at(key, _count, otherwise=0) for key, role in roles.items() if key in read.data
    }
    read.mistakes.refuse()
    return found


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise SpecError((), f"expected a count of nodes, found {value!r}")
    return value
