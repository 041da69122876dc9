"""The moment when a new cluster can be used: its quorum has voters, its brokers are unfenced.

Waiting ends at once when a node dies on its own, with its last words.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

from fencepost.clusters.hosts.place import LOG
from fencepost.clusters.kafka.api_versions import NEWEST, ApiVersions
from fencepost.clusters.kafka.observation import ask_metadata, quorum_high_watermark, view_of
from fencepost.clusters.kafka_port import Role, role_of
from fencepost.clusters.port import NodeName
from fencepost.clusters.processes.node import ProcessNode
from fencepost.clusters.protocol.talking import Address
from fencepost.history.failure import HarnessError

_START_TIMEOUT_S: Final = 120.0
"""A start takes 2 to 10 s; on a machine that does much else, several times that."""
_POLL_S: Final = 0.02
_VOTERS_OFFSET: Final = 2
"""In the metadata log of a new dynamic quorum: a leader change, kraft.version, the voters."""


def await_first_voters(
    nodes: Mapping[NodeName, ProcessNode], running: Callable[[], Mapping[NodeName, Address]]
) -> None:
    """Wait until the records that name the first voters are committed; `running`: controllers.

    A broker that fetched them and had to truncate them, as another controller was elected, does not
    know the voters again afterwards, and never finds a controller (3.9.2, 4.3.1). Raises
    HarnessError if a node dies, or after two minutes.
    """
    deadline = time.monotonic() + _START_TIMEOUT_S
    while quorum_high_watermark(running()) <= _VOTERS_OFFSET:
        _raise_if_dead(nodes)
        if time.monotonic() > deadline:
            raise HarnessError(
                f"the controllers did not commit their first voters within "
                f"{_START_TIMEOUT_S:.0f} s of the start; logs: {_logs(nodes)}"
            )
        time.sleep(_POLL_S)


def await_brokers(
    nodes: Mapping[NodeName, ProcessNode],
    brokers: Mapping[NodeName, Address],
    *,
    ids: Mapping[NodeName, int],
    api_versions: ApiVersions = NEWEST,
) -> None:
    """Wait until each of these brokers shows all of them unfenced, by these ids.

    Raises HarnessError if a node dies, or with what each showed after two minutes.
    """
    deadline = time.monotonic() + _START_TIMEOUT_S
    wanted = frozenset(ids[name] for name in brokers)
    while True:
        answers = ask_metadata(brokers, api_versions=api_versions)
        seen = {name: view_of(answer, time_ns=0).brokers for name, answer in answers.items()}
        if all(seen.get(name) == wanted for name in brokers):
            return
        _raise_if_dead(nodes)
        if time.monotonic() > deadline:
            shown = {name: sorted(seen.get(name, ())) for name in brokers}
            raise HarnessError(
                f"brokers {sorted(wanted)} were not all unfenced {_START_TIMEOUT_S:.0f} s "
                f"after the start; shown by {listed(shown)}; logs: {_logs(nodes)}"
            )
        time.sleep(_POLL_S)


def await_migrated(
    nodes: Mapping[NodeName, ProcessNode], active: Callable[[], NodeName | None]
) -> None:
    """Wait until a controller of Kafka's own is the active one, as `active` tells.

    Raises HarnessError if a node dies, or after two minutes.
    """
    deadline = time.monotonic() + _START_TIMEOUT_S
    while (now := active()) is None or role_of(now) is not Role.CONTROLLER:
        _raise_if_dead(nodes)
        if time.monotonic() > deadline:
            raise HarnessError(
                f"no controller of Kafka's own was active {_START_TIMEOUT_S:.0f} s after the "
                f"start (the active one: {now}); logs: {_logs(nodes)}"
            )
        time.sleep(_POLL_S)


def listed(items: Mapping[NodeName, object]) -> str:
    """Return what each node has, in words: "broker-1 running, broker-2 paused"."""
    return ", ".join(f"{name} {value}" for name, value in items.items())


def _raise_if_dead(nodes: Mapping[NodeName, ProcessNode]) -> None:
    dead = [node for node in nodes.values() if node.process.exit_code is not None]
    if dead:
        raise HarnessError("; ".join(node.obituary() for node in dead))


def _logs(nodes: Mapping[NodeName, ProcessNode]) -> str:
    return str(next(iter(nodes.values())).place.directory.parent / "*" / LOG)
