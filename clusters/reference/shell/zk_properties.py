"""The properties of a broker of the ZooKeeper generation: Kafka's names, and the drafts' of theirs.

`controller.heartbeat.timeout.ms` and `broker.heartbeat.timeout.ms` are the two time-outs of the
draft "Controller heartbeats", whose names are not in it. `inter.broker.protocol.version` is 1 below
its behaviour, and 2 with it.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.shell.node_settings import HOSTS, ProcessSettings
from fencepost.clusters.reference.shell.property_values import (
    ID_MAX,
    PORT_MAX,
    RULES_OFF,
    RULES_ON,
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
from fencepost.clusters.reference.zk.configuration import InterBrokerProtocol, ZkConfiguration
from fencepost.clusters.reference.zk.rules import ZkRules

CONNECT: Final = "zookeeper.connect"
ID: Final = "broker.id"
PROTOCOL: Final = "inter.broker.protocol.version"
PROTOCOL_MAX: Final = "fencepost.inter.broker.protocol.version.max"
"""The highest that the node's software knows: an older one's is lower."""
HOST: Final = "host.name"
"""The host that the broker's id is kept under; that of its first advertised listener, else."""
ADOPTS: Final = "fencepost.broker.id.adopt.missing"
"""Step b of the draft on broker ids."""
_TRUTHS: Final = ("false", "true")
_NUMBERS: Final[Mapping[str, Number]] = {
    **SHARED_NUMBERS,
    "zookeeper.session.timeout.ms": Number(field="session_timeout_ns", unit=MS, lowest=1),
    "broker.heartbeat.interval.ms": Number(field="heartbeat_interval_ns", unit=MS, lowest=1),
    "controller.heartbeat.timeout.ms": Number(
        field="controller_side_timeout_ns", unit=MS, lowest=1
    ),
    "broker.heartbeat.timeout.ms": Number(field="broker_side_timeout_ns", unit=MS, lowest=1),
    "controlled.shutdown.retry.backoff.ms": Number(field="controlled_shutdown_retry_ns", unit=MS),
    "fencepost.host.garbage.interval.ms": Number(field="garbage_scan_interval_ns", unit=MS),
}
_ALIASES: Final[Mapping[str, str]] = {
    "replica.socket.timeout.ms": "controller.socket.timeout.ms",
    "log.dir": "log.dirs",
}
KNOWN: Final = frozenset(
    (
        *_NUMBERS,
        *_ALIASES,
        "log.dirs",
        "listeners",
        "advertised.listeners",
        "listener.security.protocol.map",
        "inter.broker.listener.name",
        "broker.rack",
        ID,
        CONNECT,
        PROTOCOL,
        PROTOCOL_MAX,
        HOST,
        ADOPTS,
        RULES_OFF,
        RULES_ON,
        HOSTS,
    )
)
"""The names that may stand in a file."""


def parsed(stated: Mapping[str, str]) -> ProcessSettings:
    """The settings that these properties say. Raises UsageError."""
    found = by_own_name(stated, known=KNOWN, aliases=_ALIASES)
    bound = dict(listeners(found, "listeners"))
    replication = found.get("inter.broker.listener.name", next(iter(bound)))
    if replication not in bound:
        refuse("inter.broker.listener.name", replication, f"one of {', '.join(bound)}")
    directories = tuple(Path(one.strip()) for one in required(found, "log.dirs").split(","))
    own = advertised(found)
    protocol_max = _protocol(found, PROTOCOL_MAX, max(InterBrokerProtocol))
    protocol = _protocol(found, PROTOCOL, protocol_max)
    if protocol > protocol_max:
        refuse(PROTOCOL, found[PROTOCOL], f"at most {PROTOCOL_MAX}={int(protocol_max)}")
    configuration = ZkConfiguration(
        node_id=number(ID, found.get(ID, "-1"), lowest=-1, highest=ID_MAX),
        is_controller=False,
        voters=(),
        cluster_id="",
        listeners=own,
        rack=found.get("broker.rack"),
        inter_broker_protocol=protocol,
        inter_broker_protocol_max=protocol_max,
        host_name=found.get(HOST, own[0][1]),
        adopts_missing_ids=_is_true(found, ADOPTS),
        **numbers(found, _NUMBERS),
    )
    return ProcessSettings(
        configuration=configuration,
        rules=rules_kept(found, ZkRules()),
        bound=bound,
        controller_listener="",
        replication_listener=replication,
        voters={},
        is_broker=True,
        log_directories=directories,
        metadata_directory=directories[0],
        hosts_file=Path(found[HOSTS]) if HOSTS in found else None,
        zookeepers=_servers(found),
    )


def _protocol(
    found: Mapping[str, str], name: str, default: InterBrokerProtocol
) -> InterBrokerProtocol:
    if name not in found:
        return default
    allowed = tuple(str(int(one)) for one in InterBrokerProtocol)
    return InterBrokerProtocol(int(one_of(found, name, allowed)))


def _is_true(found: Mapping[str, str], name: str) -> bool:
    return name in found and one_of(found, name, _TRUTHS) == "true"


def _servers(found: Mapping[str, str]) -> tuple[Address, ...]:
    servers = []
    for one in required(found, CONNECT).split(","):
        parts = re.fullmatch(r"([^:/]+):(\d+)", one.strip())
        if parts is None:
            refuse(CONNECT, found[CONNECT], "host:port, separated by commas")
        servers.append((parts[1], number(CONNECT, parts[2], lowest=1, highest=PORT_MAX)))
    return tuple(servers)
