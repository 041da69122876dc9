"""The words under `nemesis`: which faults a mix draws, whom they hit, how often and how long."""

from typing import Final

from fencepost.clusters.stage import Stage
from fencepost.clusters.systems import SYSTEMS
from fencepost.harness.scenario.validation import MappingReader, build, known_words, mapping, span_s
from fencepost.harness.seeds import stream
from fencepost.history.failure import Mistakes, SpecError
from fencepost.nemesis.messages import MESSAGES, sent_by
from fencepost.nemesis.mix import Mix
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.nemesis.targets import parse_target
from fencepost.nemesis.verbs.registry import EPISODES, STRIKES

_FLAGS: Final[tuple[str, ...]] = ("overlap", "rounds")
_STRIKES: Final = "strikes"
"""All kinds that concern single messages of the protocol."""
_MORE: Final = ("window", "window", "window", "window", "late_fetch")
"""The kinds that come more often than once among all strikes: there are most ways to draw these."""
_LATE_FETCH: Final = "late_fetch"
_OF_FETCHES: Final = ("relay", _LATE_FETCH)


def parse_mix(value: object, stage: Stage) -> MixSpec:
    """Return the spec of a mix; raise SpecError with the paths to the words that cannot be."""
    read = MappingReader(mapping(value, example="{faults: [kill, pause], gap: [2s, 5s]}"))
    read.refuse_unknown(["faults", "targets", "gap", "duration", "down", "windows", *_FLAGS])
    default, system = MixSpec(), SYSTEMS[stage.system]
    windows = read.at("windows", _messages, otherwise=default.windows)
    found: dict[str, object] = {
        "faults": read.at(
            "faults", lambda value: _faults(value, windows, stage), otherwise=default.faults
        ),
        "windows": windows,
        "targets": read.at("targets", lambda v: _targets(v, stage), otherwise=system.mix_targets),
        "system": system.name,
        "gap_s": read.at("gap", span_s, otherwise=default.gap_s),
        "duration_s": read.at("duration", span_s, otherwise=default.duration_s),
        "down": read.at("down", lambda value: _budget(value, stage), otherwise={}),
        **{key: read.data[key] for key in _FLAGS if key in read.data},
    }
    return read.mistakes.refuse_after(lambda: build(MixSpec, found))


def seeded_mix(spec: MixSpec, *, seed: int, keys: tuple[str, ...]) -> Mix:
    """Return the mix of a run with this seed."""
    return Mix(spec, stream(seed, "mix"), keys, streams=lambda name: stream(seed, f"mix/{name}"))


def _faults(value: object, windows: tuple[str, ...], stage: Stage) -> tuple[str, ...]:
    words = known_words(_words(value), (*EPISODES, _STRIKES), what="fault")
    could = [kind for kind in STRIKES if _why_not(kind, windows, stage) is None]
    mistakes = Mistakes()
    for index, word in enumerate(words):
        if word in STRIKES and (why_not := _why_not(word, windows, stage)):
            mistakes.note((index,), f"{word} holds {why_not}")
    mistakes.refuse()
    group = (*(kind for kind in _MORE if kind in could), *could)
    return tuple(one for word in words for one in (group if word == _STRIKES else (word,)))


def _why_not(kind: str, windows: tuple[str, ...], stage: Stage) -> str | None:
    """Return what it holds that no frame is, or None."""
    if windows and kind in _OF_FETCHES and "Fetch" not in windows:
        return "Fetches, which nemesis.windows leaves out"
    if kind == _LATE_FETCH and "BrokerHeartbeat" not in sent_by(stage.nodes, stage.node_roles):
        return "heartbeats, which no node of this cluster sends"
    return None


def _messages(value: object) -> tuple[str, ...]:
    return known_words(_words(value), tuple(MESSAGES), what="message")


def _targets(value: object, stage: Stage) -> tuple[str, ...]:
    targets, mistakes = _words(value), Mistakes()
    of_keys = [one.drawn_as for one in SYSTEMS[stage.system].targets if one.of_key]
    for index, target in enumerate(targets):
        if target in of_keys:
            continue  # of any key
        try:
            parse_target(target, stage)
        except SpecError as error:
            also = f"; a mix also knows {', '.join(map(repr, of_keys))}" if of_keys else ""
            found = f"{error.message}{also}"
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
