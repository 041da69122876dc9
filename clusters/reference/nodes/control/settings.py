"""Settings of topics and brokers: which values are possible, and IncrementalAlterConfigs.

Settings that this cluster has no use for are kept as they are, so that clients read back what they
wrote.

Source: KIP-339; Kafka's `ConfigurationControlManager`, `TopicConfig`.
"""

from collections.abc import Callable
from typing import Final

from fencepost.clusters.reference.nodes.control.decision import Decision, DecisionView
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import (
    AlterConfigsRequest,
    AlterConfigsResponse,
)
from fencepost.clusters.reference.nodes.records import ConfigRecord

_TOPIC: Final = 2
_BROKER: Final = 4

_Change = tuple[int, str, str, str | None]


def is_sound(name: str, value: str | None) -> bool:
    """Return whether a setting may have this value; None is its default."""
    check = _CHECKS.get(name)
    return bool(name) and (value is None or check is None or check(value))


def altered(view: DecisionView, request: AlterConfigsRequest) -> Decision:
    """Decide on all changes of a resource, or on none of them, with the reason."""
    by_resource: dict[tuple[int, str], list[_Change]] = {}
    for change in request.changes:
        by_resource.setdefault(change[:2], []).append(change)
    records: list[ConfigRecord] = []
    answers: list[tuple[int, str, int, str]] = []
    for (kind, resource), changes in by_resource.items():
        error, words = _refusal(view, kind, resource, changes)
        answers.append((kind, resource, error, words))
        if error == Error.NONE:
            records += _records(view, changes)
    response = AlterConfigsResponse(request.correlation, tuple(answers))
    return Decision(response=response, records=() if request.validate_only else tuple(records))


def _refusal(
    view: DecisionView, kind: int, resource: str, changes: list[_Change]
) -> tuple[Error, str]:
    if kind == _TOPIC and resource not in view.image.topics:
        return Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {resource!r}"
    if kind == _BROKER and resource and not resource.isdecimal():
        return Error.INVALID_REQUEST, f"expected the id of a broker, found {resource!r}"
    if kind not in (_TOPIC, _BROKER):
        return Error.INVALID_REQUEST, f"expected resource type 2 or 4, found {kind}"
    names = [name for _, _, name, _ in changes]
    for _, _, name, value in changes:
        if names.count(name) > 1:
            return Error.INVALID_REQUEST, f"{name} is changed twice"
        if not is_sound(name, value):
            return Error.INVALID_CONFIG, f"{name} cannot be {value!r}"
    return Error.NONE, ""


def _records(view: DecisionView, changes: list[_Change]) -> list[ConfigRecord]:
    """Return only the records that change anything."""
    configs = view.image.configs
    return [
        ConfigRecord(kind, resource, name, value)
        for kind, resource, name, value in changes
        if configs.get((kind, resource), {}).get(name) != value
    ]


def _whole_from(least: int) -> Callable[[str], bool]:
    def check(value: str) -> bool:
        digits = value.removeprefix("-")
        return digits.isascii() and digits.isdecimal() and int(value) >= least

    return check


def _one_of(*values: str) -> Callable[[str], bool]:
    return values.__contains__


_CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "min.insync.replicas": _whole_from(1),
    "unclean.leader.election.enable": _one_of("true", "false"),
    "retention.ms": _whole_from(-1),
    "cleanup.policy": _one_of("delete", "compact", "compact,delete", "delete,compact"),
}
