"""The words under `nemesis`: which faults a mix draws, whom they hit, how often and how long."""

from collections.abc import Mapping
from typing import Any, Final

from clusters.stage import Stage
from harness.scenario.validation import at, build, mapping, refuse_unknown, span_s
from history.failure import SpecError
from nemesis.mix import MixSpec
from nemesis.targets import parse_target
from nemesis.verbs.registry import EPISODES
from nemesis.words import did_you_mean

__all__ = ["parse_mix"]

_FLAGS: Final[tuple[str, ...]] = ("overlap", "rounds")


def parse_mix(value: object, stage: Stage) -> MixSpec:
    """What a mix draws from. SpecError with the path to the first word that cannot be."""
    data = mapping(value, example="{faults: [kill, pause], gap: [2s, 5s]}")
    refuse_unknown(data, ["faults", "targets", "gap", "duration", "down", *_FLAGS])
    spans = {f"{key}_s": at(key, data, span_s) for key in ("gap", "duration") if key in data}
    down = at("down", data, lambda one: _budget(one, stage))
    faults = _words(data, "faults", MixSpec.__dataclass_fields__["faults"].default)
    for index, fault in enumerate(faults):
        if fault not in EPISODES:
            raise SpecError(
                ("faults", index), f"unknown fault {fault!r}; {did_you_mean(fault, EPISODES)}"
            )
    targets = _words(data, "targets", MixSpec.__dataclass_fields__["targets"].default)
    for index, target in enumerate(targets):
        _refuse_target(target, index, stage)
    rest = {key: data[key] for key in _FLAGS if key in data}
    return build(MixSpec, {"faults": faults, "targets": targets, "down": down, **spans, **rest})


def _words(data: Mapping[str, Any], key: str, default: Any) -> tuple[str, ...]:
    found = data.get(key, default)
    if isinstance(found, str) or not isinstance(found, (list, tuple)) or not found:
        raise SpecError((key,), f"expected a list of words, found {found!r}")
    return tuple(str(word) for word in found)


def _refuse_target(target: str, index: int, stage: Stage) -> None:
    by_any_key = target in ("leader", "isr follower")
    if not by_any_key:
        try:
            parse_target(target, nodes=stage.nodes, keys=stage.keys)
        except SpecError as error:
            raise SpecError(
                ("targets", index), f"{error.message}; a mix also knows 'leader', 'isr follower'"
            ) from None


def _budget(value: object, stage: Stage) -> dict[str, int]:
    data = mapping(value, example="{brokers: 1, controllers: 1}")
    roles = {f"{role.name}s": role.name for role in stage.roles}
    refuse_unknown(data, list(roles))
    for key, count in data.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise SpecError((key,), f"expected a count of nodes, found {count!r}")
    return {roles[key]: count for key, count in data.items()}
