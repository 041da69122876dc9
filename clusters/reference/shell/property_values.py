"""The values of properties: how each kind is read, and how one that cannot be is refused."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, NoReturn, TypeVar

from fencepost.clusters.reference.nodes.configuration import MS, S
from fencepost.clusters.reference.nodes.records import Listener
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.history.failure import UsageError

Address = tuple[str, int]
"""Host and port."""

ID_MAX: Final = (1 << 31) - 1
PORT_MAX: Final = (1 << 16) - 1
RULES_OFF: Final = "fencepost.rules.off"
RULES_ON: Final = "fencepost.rules.on"
"""Rules that are kept where they are not by default."""
SEED: Final = "fencepost.seed"
_LARGEST: Final = (1 << 63) - 1
_PLAINTEXT: Final = "PLAINTEXT"

AnyRules = TypeVar("AnyRules", bound=Rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A property that is a number, as a field of `Configuration`."""

    field: str
    unit: int
    lowest: int = 0


SHARED_NUMBERS: Final[Mapping[str, Number]] = {
    "initial.broker.registration.timeout.ms": Number(field="registration_timeout_ns", unit=MS),
    "replica.lag.time.max.ms": Number(field="replica_lag_max_ns", unit=MS, lowest=1),
    "replica.fetch.wait.max.ms": Number(field="replica_fetch_wait_ns", unit=MS),
    "replica.fetch.backoff.ms": Number(field="replica_fetch_backoff_ns", unit=MS),
    "max.incremental.fetch.session.cache.slots": Number(field="fetch_sessions_max", unit=1),
    "controller.socket.timeout.ms": Number(field="request_timeout_ns", unit=MS, lowest=1),
    "replica.high.watermark.checkpoint.interval.ms": Number(
        field="checkpoint_interval_ns", unit=MS, lowest=1
    ),
    "log.flush.interval.messages": Number(field="flush_records", unit=1),
    "min.insync.replicas": Number(field="min_insync_replicas", unit=1, lowest=1),
    "leader.imbalance.check.interval.seconds": Number(field="auto_leader_rebalance_ns", unit=S),
    SEED: Number(field="seed", unit=1),
}
"""The numbers of nodes of every generation."""


def by_own_name(
    stated: Mapping[str, str], *, known: Iterable[str], aliases: Mapping[str, str]
) -> dict[str, str]:
    """Return properties by their own names. Raises UsageError for one that is not known."""
    found: dict[str, str] = {}
    for name, value in stated.items():
        if name not in known:
            raise UsageError(f"{name} is not known; known are: {', '.join(sorted(known))}")
        own = aliases.get(name, name)
        if found.get(own, value) != value:
            raise UsageError(f"{own} is stated twice: {found[own]} and, as {name}, {value}")
        found[own] = value
    return found


def numbers(found: Mapping[str, str], table: Mapping[str, Number]) -> dict[str, Any]:
    """Return the fields of a configuration that are numbers. Raises UsageError."""
    return {
        one.field: number(name, found[name], lowest=one.lowest) * one.unit
        for name, one in table.items()
        if name in found
    }


def listeners(found: Mapping[str, str], name: str) -> list[tuple[str, Address]]:
    """Return listeners by name, in their order. Raises UsageError."""
    stated: dict[str, Address] = {}
    for one in required(found, name).split(","):
        parts = re.fullmatch(r"(\w+)://([^:/]*):(\d+)", one.strip())
        if parts is None or parts[1] in stated:
            refuse(name, found[name], "name://host:port, separated by commas, no name twice")
        port = number(name, parts[3], lowest=0, highest=PORT_MAX)
        stated[parts[1]] = (parts[2], port)
    return list(stated.items())


def advertised(found: Mapping[str, str]) -> tuple[Listener, ...]:
    """Return the listeners that a broker registers. Raises UsageError."""
    name = "advertised.listeners" if "advertised.listeners" in found else "listeners"
    stated = found.get("listener.security.protocol.map", "")
    for one in filter(None, stated.split(",")):
        if one.partition(":")[2] != _PLAINTEXT:
            refuse("listener.security.protocol.map", stated, f"{_PLAINTEXT} for every listener")
    return tuple((listener, host, port, 0) for listener, (host, port) in listeners(found, name))


def rules_kept(found: Mapping[str, str], rules: AnyRules) -> AnyRules:
    """Return these rules with those that are switched on, less those off. Raises UsageError."""
    known = [field.name for field in fields(rules)]
    changes: dict[str, Any] = {}
    for switch, kept in ((RULES_ON, True), (RULES_OFF, False)):
        names = [one.strip() for one in found.get(switch, "").split(",") if one.strip()]
        if set(names) - set(known):
            refuse(switch, found[switch], f"some of {', '.join(known)}")
        changes |= dict.fromkeys(names, kept)
    return replace(rules, **changes)


def required(found: Mapping[str, str], name: str) -> str:
    """Return a value that must be there. Raises UsageError."""
    if not found.get(name):
        raise UsageError(f"{name} is missing")
    return found[name]


def one_of(found: Mapping[str, str], name: str, allowed: Iterable[str], *, more: str = "") -> str:
    """Return a value that must be one of these; `more` says more of them. Raises UsageError."""
    value = required(found, name)
    if value not in allowed:
        refuse(name, value, f"one of {', '.join(allowed)}{more}")
    return value


def number(name: str, value: str, *, lowest: int, highest: int = _LARGEST) -> int:
    """Return a whole number within these bounds. Raises UsageError."""
    upwards = "on" if highest == _LARGEST else f"to {highest}"
    words = f"a whole number from {lowest} {upwards}"
    try:
        found = int(value)
    except ValueError:
        refuse(name, value, words)
    if not lowest <= found <= highest:
        refuse(name, value, words)
    return found


def refuse(name: str, value: str, allowed: str) -> NoReturn:
    """Raise UsageError: this property cannot have this value."""
    raise UsageError(f"{name}: expected {allowed}, found {value!r}")
