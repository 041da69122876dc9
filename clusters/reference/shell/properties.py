"""A node's properties file as values: KIP-631's names, and Kafka's where scenarios use those.

Every name is known, or it is refused; a value that cannot be is refused with the values that can
(K12). Names that only Kafka has a use for are left out by who writes the file.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, NoReturn

from clusters.kafka_port import QUORUM_SIZES
from clusters.reference.nodes.configuration import MS, Configuration, S
from clusters.reference.nodes.levels import LEVEL_REGISTRATION, LEVEL_VISIBILITY
from clusters.reference.nodes.records import Listener
from clusters.reference.nodes.rules import Rules
from clusters.reference.shell.small_files import properties_in
from history.failure import UsageError

__all__ = [
    "HOSTS",
    "KNOWN",
    "LEVEL",
    "RULES_OFF",
    "Address",
    "ProcessSettings",
    "number_fields",
    "parsed",
    "read_properties",
]

Address = tuple[str, int]
"""Host and port."""

RULES_OFF: Final = "fencepost.rules.off"
LEVEL: Final = "fencepost.metadata.version"
HOSTS: Final = "fencepost.hosts.file"
SEED: Final = "fencepost.seed"

_ID_MAX: Final = (1 << 31) - 1
_PORT_MAX: Final = (1 << 16) - 1
_LARGEST: Final = (1 << 63) - 1
_PLAINTEXT: Final = "PLAINTEXT"
_ROLES: Final = ("broker", "controller")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Number:
    """A property that is a number, as a field of `Configuration`."""

    field: str
    unit: int
    lowest: int = 0


_NUMBERS: Final[Mapping[str, _Number]] = {
    "registration.heartbeat.interval.ms": _Number(field="heartbeat_interval_ns", unit=MS, lowest=1),
    "registration.lease.timeout.ms": _Number(field="lease_timeout_ns", unit=MS, lowest=1),
    "initial.broker.registration.timeout.ms": _Number(field="registration_timeout_ns", unit=MS),
    "controller.quorum.fetch.timeout.ms": _Number(
        field="quorum_fetch_timeout_ns", unit=MS, lowest=1
    ),
    "controller.quorum.election.timeout.ms": _Number(
        field="election_timeout_ns", unit=MS, lowest=1
    ),
    "controller.quorum.election.backoff.max.ms": _Number(field="election_backoff_max_ns", unit=MS),
    "controller.quorum.request.timeout.ms": _Number(
        field="quorum_request_timeout_ns", unit=MS, lowest=1
    ),
    "controller.quorum.retry.backoff.ms": _Number(field="retry_backoff_ns", unit=MS),
    "controller.quorum.retry.backoff.max.ms": _Number(field="retry_backoff_max_ns", unit=MS),
    "metadata.max.idle.interval.ms": _Number(field="noop_interval_ns", unit=MS),
    "fencepost.metadata.snapshot.records": _Number(
        field="metadata_snapshot_records", unit=1, lowest=1
    ),
    "fencepost.metadata.snapshot.fetch.max.bytes": _Number(
        field="snapshot_piece_max", unit=1, lowest=1
    ),
    "replica.lag.time.max.ms": _Number(field="replica_lag_max_ns", unit=MS, lowest=1),
    "replica.fetch.wait.max.ms": _Number(field="replica_fetch_wait_ns", unit=MS),
    "replica.fetch.backoff.ms": _Number(field="replica_fetch_backoff_ns", unit=MS),
    "max.incremental.fetch.session.cache.slots": _Number(field="fetch_sessions_max", unit=1),
    "controller.socket.timeout.ms": _Number(field="request_timeout_ns", unit=MS, lowest=1),
    "replica.high.watermark.checkpoint.interval.ms": _Number(
        field="checkpoint_interval_ns", unit=MS, lowest=1
    ),
    "log.flush.interval.messages": _Number(field="flush_records", unit=1),
    "min.insync.replicas": _Number(field="min_insync_replicas", unit=1, lowest=1),
    "leader.imbalance.check.interval.seconds": _Number(field="auto_leader_rebalance_ns", unit=S),
    SEED: _Number(field="seed", unit=1),
}

_ALIASES: Final[Mapping[str, str]] = {
    "broker.heartbeat.interval.ms": "registration.heartbeat.interval.ms",
    "broker.session.timeout.ms": "registration.lease.timeout.ms",
    "replica.socket.timeout.ms": "controller.socket.timeout.ms",
    "controller.quorum.voters": "controller.connect",
    "log.dir": "log.dirs",
}
"""Kafka's names of what the proposal calls otherwise, or of what is one thing here."""

_OTHERS: Final = (
    "process.roles",
    "controller.listener.names",
    "controller.connect",
    "controller.id",
    "broker.id",
    "node.id",
    "log.dirs",
    "metadata.log.dir",
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "inter.broker.listener.name",
    "broker.rack",
    RULES_OFF,
    LEVEL,
    HOSTS,
)

KNOWN: Final = frozenset((*_NUMBERS, *_ALIASES, *_OTHERS))
"""The names that may stand in a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """The settings of a process: its node, and what of the machine it uses."""

    configuration: Configuration
    """Without the cluster's id, which the disk says."""
    rules: Rules
    bound: Mapping[str, Address]
    """The addresses on which it listens, by the listener's name."""
    controller_listener: str
    replication_listener: str
    """Brokers find each other by it."""
    voters: Mapping[int, Address]
    log_directories: tuple[Path, ...]
    metadata_directory: Path
    hosts_file: Path | None
    """The file in which names of other nodes are looked up before any other source."""


def read_properties(path: Path) -> ProcessSettings:
    """The settings in a file. Raises UsageError with the file, the name and what is allowed."""
    try:
        stated = properties_in(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from error
    try:
        return parsed(stated)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def number_fields() -> dict[str, tuple[str, int]]:
    """Field of `Configuration` and its unit, by every property that is a number, Kafka's names too.

    For who takes some of them from a scenario and leaves the rest.
    """
    found = {name: (number.field, number.unit) for name, number in _NUMBERS.items()}
    return found | {kafka: found[name] for kafka, name in _ALIASES.items() if name in found}


def parsed(stated: Mapping[str, str]) -> ProcessSettings:
    """The settings that these properties say. Raises UsageError."""
    found = _by_own_name(stated)
    role = _one_of(found, "process.roles", _ROLES)
    node_id = _node_id(found, role)
    voters = _voters(found)
    if role == "controller" and node_id not in voters:
        _refuse("controller.connect", found["controller.connect"], f"one that names {node_id}")
    controller_listener = _required(found, "controller.listener.names").split(",")[0]
    bound = dict(_listeners(found, "listeners"))
    directories = tuple(Path(one.strip()) for one in _required(found, "log.dirs").split(","))
    replication = found.get("inter.broker.listener.name", next(iter(bound)))
    if role == "broker" and replication not in bound:
        _refuse("inter.broker.listener.name", replication, f"one of {', '.join(bound)}")
    if role == "controller" and controller_listener not in bound:
        _refuse("listeners", found["listeners"], f"one of them named {controller_listener}")
    configuration = Configuration(
        node_id=node_id,
        is_controller=role == "controller",
        voters=tuple(voters),
        cluster_id="",
        listeners=_advertised(found) if role == "broker" else (),
        rack=found.get("broker.rack"),
        level=_level(found),
        **_numbers(found),
    )
    _refuse_impossible(configuration)
    return ProcessSettings(
        configuration=configuration,
        rules=_rules(found),
        bound=bound,
        controller_listener=controller_listener,
        replication_listener=replication,
        voters=voters,
        log_directories=directories,
        metadata_directory=Path(found.get("metadata.log.dir", str(directories[0]))),
        hosts_file=Path(found[HOSTS]) if HOSTS in found else None,
    )


def _by_own_name(stated: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in stated.items():
        if name not in KNOWN:
            raise UsageError(f"{name} is not known; known are: {', '.join(sorted(KNOWN))}")
        own = _ALIASES.get(name, name)
        if found.get(own, value) != value:
            raise UsageError(f"{own} is stated twice: {found[own]} and, as {name}, {value}")
        found[own] = value
    return found


def _node_id(found: Mapping[str, str], role: str) -> int:
    own = f"{role}.id"
    name = own if own in found else "node.id"
    if name not in found:
        raise UsageError(f"{own} is missing: a number from 0 to {_ID_MAX}")
    node_id = _number(name, found[name], lowest=0, highest=_ID_MAX)
    if "node.id" in found and found["node.id"] != found[name]:
        _refuse("node.id", found["node.id"], f"{found[name]}, as {name} says")
    return node_id


def _numbers(found: Mapping[str, str]) -> dict[str, Any]:
    return {
        one.field: _number(name, found[name], lowest=one.lowest) * one.unit
        for name, one in _NUMBERS.items()
        if name in found
    }


def _voters(found: Mapping[str, str]) -> dict[int, Address]:
    name, form = "controller.connect", "id@host:port, separated by commas"
    voters: dict[int, Address] = {}
    for one in _required(found, name).split(","):
        parts = re.fullmatch(r"(\d+)@([^@:]+):(\d+)", one.strip())
        if parts is None:
            _refuse(name, found[name], form)
        port = _number(name, parts[3], lowest=1, highest=_PORT_MAX)
        voters[_number(name, parts[1], lowest=0, highest=_ID_MAX)] = (parts[2], port)
    if len(voters) not in QUORUM_SIZES:
        _refuse(name, found[name], "1, 3 or 5 controllers, each with an id of its own")
    return voters


def _listeners(found: Mapping[str, str], name: str) -> list[tuple[str, Address]]:
    listeners: dict[str, Address] = {}
    for one in _required(found, name).split(","):
        parts = re.fullmatch(r"(\w+)://([^:/]*):(\d+)", one.strip())
        if parts is None or parts[1] in listeners:
            _refuse(name, found[name], "name://host:port, separated by commas, no name twice")
        port = _number(name, parts[3], lowest=0, highest=_PORT_MAX)
        listeners[parts[1]] = (parts[2], port)
    return list(listeners.items())


def _advertised(found: Mapping[str, str]) -> tuple[Listener, ...]:
    name = "advertised.listeners" if "advertised.listeners" in found else "listeners"
    stated = found.get("listener.security.protocol.map", "")
    for one in filter(None, stated.split(",")):
        if one.partition(":")[2] != _PLAINTEXT:
            _refuse("listener.security.protocol.map", stated, f"{_PLAINTEXT} for every listener")
    return tuple((listener, host, port, 0) for listener, (host, port) in _listeners(found, name))


def _level(found: Mapping[str, str]) -> int:
    if LEVEL not in found:
        return LEVEL_VISIBILITY
    return _number(LEVEL, found[LEVEL], lowest=LEVEL_REGISTRATION, highest=LEVEL_VISIBILITY)


def _rules(found: Mapping[str, str]) -> Rules:
    names = [one.strip() for one in found.get(RULES_OFF, "").split(",") if one.strip()]
    try:
        return Rules().without(*names)
    except KeyError:
        known = ", ".join(field.name for field in fields(Rules))
        _refuse(RULES_OFF, found[RULES_OFF], f"some of {known}")


def _refuse_impossible(configuration: Configuration) -> None:
    """Settings that no value of one alone makes impossible."""
    if configuration.heartbeat_interval_ns >= configuration.lease_timeout_ns:
        _refuse(
            "registration.heartbeat.interval.ms",
            str(configuration.heartbeat_interval_ns // MS),
            f"less than registration.lease.timeout.ms={configuration.lease_timeout_ns // MS}",
        )
    if configuration.retry_backoff_ns > configuration.retry_backoff_max_ns:
        _refuse(
            "controller.quorum.retry.backoff.ms",
            str(configuration.retry_backoff_ns // MS),
            "at most controller.quorum.retry.backoff.max.ms="
            f"{configuration.retry_backoff_max_ns // MS}",
        )


def _required(found: Mapping[str, str], name: str) -> str:
    if not found.get(name):
        raise UsageError(f"{name} is missing")
    return found[name]


def _one_of(found: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    value = _required(found, name)
    if value not in allowed:
        _refuse(name, value, f"one of {', '.join(allowed)}; a process has one role here")
    return value


def _number(name: str, value: str, *, lowest: int, highest: int = _LARGEST) -> int:
    upwards = "on" if highest == _LARGEST else f"to {highest}"
    words = f"a whole number from {lowest} {upwards}"
    try:
        number = int(value)
    except ValueError:
        _refuse(name, value, words)
    if not lowest <= number <= highest:
        _refuse(name, value, words)
    return number


def _refuse(name: str, value: str, allowed: str) -> NoReturn:
    raise UsageError(f"{name}: expected {allowed}, found {value!r}")
