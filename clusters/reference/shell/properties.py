"""A node's properties file as values: KIP-631's names, and Kafka's where scenarios use those.

A file that says `zookeeper.connect` is of the ZooKeeper generation: `zk_properties` reads it. Every
name is known, or it is refused; a value that cannot be is refused with the values that can (K12).
Names that only Kafka has a use for are left out by who writes the file.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from fencepost.clusters.kafka_port import QUORUM_SIZES
from fencepost.clusters.reference.nodes.configuration import MS, Configuration
from fencepost.clusters.reference.nodes.levels import LEVEL_REGISTRATION, LEVEL_VISIBILITY
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.shell import zk_properties
from fencepost.clusters.reference.shell.node_settings import HOSTS, KEPT, ProcessSettings
from fencepost.clusters.reference.shell.property_values import (
    ID_MAX,
    PORT_MAX,
    RULES_OFF,
    SHARED_NUMBERS,
    Address,
    Number,
    advertised,
    by_own_name,
    listeners,
    number,
    numbers,
    one_of,
    refuse,
    required,
    rules_kept,
)
from fencepost.clusters.reference.shell.small_files import properties_in
from fencepost.clusters.reference.shell.zk_properties import CONNECT
from fencepost.history.failure import UsageError

LEVEL: Final = "fencepost.metadata.version"

_BROKER: Final = "broker"
_CONTROLLER: Final = "controller"
_ROLES: Final = (_BROKER, _CONTROLLER, f"{_BROKER},{_CONTROLLER}", f"{_CONTROLLER},{_BROKER}")

_NUMBERS: Final[Mapping[str, Number]] = {
    **SHARED_NUMBERS,
    "registration.heartbeat.interval.ms": Number(field="heartbeat_interval_ns", unit=MS, lowest=1),
    "registration.lease.timeout.ms": Number(field="lease_timeout_ns", unit=MS, lowest=1),
    "controller.quorum.fetch.timeout.ms": Number(
        field="quorum_fetch_timeout_ns", unit=MS, lowest=1
    ),
    "controller.quorum.election.timeout.ms": Number(field="election_timeout_ns", unit=MS, lowest=1),
    "controller.quorum.election.backoff.max.ms": Number(field="election_backoff_max_ns", unit=MS),
    "controller.quorum.request.timeout.ms": Number(
        field="quorum_request_timeout_ns", unit=MS, lowest=1
    ),
    "controller.quorum.retry.backoff.ms": Number(field="retry_backoff_ns", unit=MS),
    "controller.quorum.retry.backoff.max.ms": Number(field="retry_backoff_max_ns", unit=MS),
    "metadata.max.idle.interval.ms": Number(field="noop_interval_ns", unit=MS),
    "fencepost.metadata.snapshot.records": Number(
        field="metadata_snapshot_records", unit=1, lowest=1
    ),
    "fencepost.metadata.snapshot.fetch.max.bytes": Number(
        field="snapshot_piece_max", unit=1, lowest=1
    ),
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
    KEPT,
)

KNOWN: Final = frozenset((*_NUMBERS, *_ALIASES, *_OTHERS))
"""The names that may stand in a file."""


def read_properties(path: Path) -> ProcessSettings:
    """The settings in a file. Raises UsageError with the file, the name and what is allowed."""
    try:
        stated = properties_in(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from error
    try:
        return zk_properties.parsed(stated) if CONNECT in stated else parsed(stated)
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
    found = by_own_name(stated, known=KNOWN, aliases=_ALIASES)
    roles = one_of(found, "process.roles", _ROLES).split(",")
    is_broker, is_controller = _BROKER in roles, _CONTROLLER in roles
    node_id = _node_id(found, roles)
    voters = _voters(found)
    if is_controller and node_id not in voters:
        refuse("controller.connect", found["controller.connect"], f"one that names {node_id}")
    controller_listener = required(found, "controller.listener.names").split(",")[0]
    bound = dict(listeners(found, "listeners"))
    directories = tuple(Path(one.strip()) for one in required(found, "log.dirs").split(","))
    replication = found.get("inter.broker.listener.name", next(iter(bound)))
    if is_broker and replication not in bound:
        refuse("inter.broker.listener.name", replication, f"one of {', '.join(bound)}")
    if is_controller and controller_listener not in bound:
        refuse("listeners", found["listeners"], f"one of them named {controller_listener}")
    configuration = Configuration(
        node_id=node_id,
        is_controller=is_controller,
        voters=tuple(voters),
        cluster_id="",
        listeners=advertised(found) if is_broker else (),
        rack=found.get("broker.rack"),
        level=_level(found),
        **numbers(found, _NUMBERS),
    )
    _refuse_impossible(configuration)
    return ProcessSettings(
        configuration=configuration,
        rules=rules_kept(found, Rules()),
        bound=bound,
        controller_listener=controller_listener,
        replication_listener=replication,
        voters=voters,
        is_broker=is_broker,
        log_directories=directories,
        metadata_directory=Path(found.get("metadata.log.dir", str(directories[0]))),
        hosts_file=Path(found[HOSTS]) if HOSTS in found else None,
        kept_directory=Path(found[KEPT]) if KEPT in found else None,
    )


def _node_id(found: Mapping[str, str], roles: Sequence[str]) -> int:
    own = f"{roles[0]}.id" if len(roles) == 1 else "node.id"
    name = own if own in found else "node.id"
    if name not in found:
        raise UsageError(f"{own} is missing: a number from 0 to {ID_MAX}")
    node_id = number(name, found[name], lowest=0, highest=ID_MAX)
    if "node.id" in found and found["node.id"] != found[name]:
        refuse("node.id", found["node.id"], f"{found[name]}, as {name} says")
    return node_id


def _voters(found: Mapping[str, str]) -> dict[int, Address]:
    name, form = "controller.connect", "id@host:port, separated by commas"
    voters: dict[int, Address] = {}
    for one in required(found, name).split(","):
        parts = re.fullmatch(r"(\d+)@([^@:]+):(\d+)", one.strip())
        if parts is None:
            refuse(name, found[name], form)
        port = number(name, parts[3], lowest=1, highest=PORT_MAX)
        voters[number(name, parts[1], lowest=0, highest=ID_MAX)] = (parts[2], port)
    if len(voters) not in QUORUM_SIZES:
        refuse(name, found[name], "1, 3 or 5 controllers, each with an id of its own")
    return voters


def _level(found: Mapping[str, str]) -> int:
    if LEVEL not in found:
        return LEVEL_VISIBILITY
    return number(LEVEL, found[LEVEL], lowest=LEVEL_REGISTRATION, highest=LEVEL_VISIBILITY)


def _refuse_impossible(configuration: Configuration) -> None:
    """Settings that no value of one alone makes impossible."""
    if configuration.heartbeat_interval_ns >= configuration.lease_timeout_ns:
        refuse(
            "registration.heartbeat.interval.ms",
            str(configuration.heartbeat_interval_ns // MS),
            f"less than registration.lease.timeout.ms={configuration.lease_timeout_ns // MS}",
        )
    if configuration.retry_backoff_ns > configuration.retry_backoff_max_ns:
        refuse(
            "controller.quorum.retry.backoff.ms",
            str(configuration.retry_backoff_ns // MS),
            "at most controller.quorum.retry.backoff.max.ms="
            f"{configuration.retry_backoff_max_ns // MS}",
        )
