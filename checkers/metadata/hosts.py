"""Hosts and broker ids: what ZooKeeper keeps of them over time, and what each node was told when.

A broker's id by host name depends on its settings, on its disk and on ZooKeeper. Its settings may
change on the way: those hold that it was given last before it started. In ZooKeeper,
`/brokers/hosts/H` has the id that a broker on host H registered with last; `/brokers/ids/N` the
host that has id N now; topics name ids as replicas. After each record there is a state of these.

Source: the draft on broker ids by host name ("Persisting (Hostname, Broker Id) Mapping").
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import pyarrow as pa

from fencepost.checkers.facts import Facts, Tables
from fencepost.checkers.metadata.records import MetadataRecord
from fencepost.checkers.metadata.setting_values import whole_number
from fencepost.checkers.metadata.view import MetadataView

REGISTRATION: Final = "BrokerInfoRecord"
"""The type of what a broker's znode says, in the log of record."""
_NO_ID: Final = -1
"""No id is configured."""
_SCAN_MS: Final = 60_000
"""The default of `_SCANS`."""
_ADOPTS: Final = "fencepost.broker.id.adopt.missing"
_SCANS: Final = "fencepost.host.garbage.interval.ms"
_DISK: Final = "fencepost.disk.broker.id"
_HOST_OF: Final = re.compile(r"^.*://|:\d+$")
"""All of a listener but its host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """The settings that a node runs with if it starts then."""

    since_ns: int
    host: str
    configured: int
    adopts: bool
    scan_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostNode:
    """A node that was told its host's name, and the times at which its disk was wiped."""

    told: Sequence[HostSettings]
    wiped_ns: Sequence[int]
    first_disk: int | None
    """The id that its disk had before the first start."""

    def between(self, from_ns: int, until_ns: int) -> Sequence[HostSettings]:
        """Return the settings that a start can have read that was at some time between these."""
        later = [one for one in self.told if from_ns < one.since_ns <= until_ns]
        before = [one for one in self.told if one.since_ns <= from_ns]
        return [*before[-1:], *later] or self.told[:1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """The evidence beside the log."""

    nodes: Mapping[str, HostNode]
    registered_by: Mapping[int, str]
    """The node of each registration, by its metadata offset, as its listeners name it."""
    facts: Facts

    def node_of(self, record: MetadataRecord) -> str | None:
        """Return the node that made a registration; None: it cannot be told.

        Where its listeners do not name it, it is the only node on its host.
        """
        known = self.registered_by.get(record.metadata_offset)
        if known is not None:
            return known
        from_ns = self.facts.earliest_ns(record.timestamp_ms)
        until_ns = self.facts.latest_ns(record.timestamp_ms)
        there = [
            name
            for name, one in self.nodes.items()
            if any(told.host == record.name for told in one.between(from_ns, until_ns))
        ]
        return there[0] if len(there) == 1 else None


def hosts_of(tables: Tables, seen: MetadataView) -> Hosts:
    """Return the evidence. Reads `node_settings`, `faults` and `metadata_log`."""
    nodes = _nodes(tables["node_settings"], tables["faults"])
    listeners = _by_listeners(seen, nodes)
    return Hosts(nodes=nodes, registered_by=listeners, facts=seen.facts)


def _nodes(settings: pa.Table, faults: pa.Table) -> Mapping[str, HostNode]:
    """Return the nodes that were told the name of their host."""
    given: dict[str, dict[int, dict[str, str]]] = {}
    for row in settings.to_pylist():
        at = given.setdefault(row["node"], {}).setdefault(row["since_ns"] or 0, {})
        at[row["name"]] = row["value"]
    wiped: dict[str, list[int]] = {}
    for row in faults.to_pylist():
        if row["fault"] == "wipe":
            for node in row["targets"]:
                wiped.setdefault(node, []).append(row["begin_ns"])
    return {
        node: HostNode(
            told=_told(one),
            wiped_ns=wiped.get(node, ()),
            first_disk=next(
                (whole_number(each[_DISK]) for each in one.values() if _DISK in each), None
            ),
        )
        for node, one in given.items()
        if any("host.name" in each for each in one.values())
    }


def _told(given: Mapping[int, Mapping[str, str]]) -> Sequence[HostSettings]:
    found: list[HostSettings] = []
    now: dict[str, str] = {}
    for since_ns, settings in sorted(given.items()):
        now |= settings
        found.append(
            HostSettings(
                since_ns=since_ns,
                host=now.get("host.name", ""),
                configured=_number(now, "broker.id", default=_NO_ID),
                adopts=now.get(_ADOPTS) == "true",
                scan_ms=_number(now, _SCANS, default=_SCAN_MS),
            )
        )
    return found


def _number(settings: Mapping[str, str], name: str, *, default: int) -> int:
    stated = whole_number(settings.get(name))
    return default if stated is None else stated


def _by_listeners(seen: MetadataView, nodes: Collection[str]) -> Mapping[int, str]:
    """Return the node of each registration whose listeners name one, by metadata offset."""
    found: dict[int, str] = {}
    for metadata_offset, detail in seen.details_of(REGISTRATION):
        listeners = json.loads(detail or "{}").get("endpoints", ())
        names = {_HOST_OF.sub("", one).partition(".")[0] for one in listeners}
        for node in names.intersection(nodes):
            found[metadata_offset] = node
    return found


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_PARTITIONS: Final = ("PartitionRecord", "PartitionChangeRecord")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostIds:
    """The state after one record."""

    record: MetadataRecord
    mappings: Mapping[str, int]
    """The id of each host, as ZooKeeper keeps it."""
    registered: Mapping[int, str]
    """The host of each id that is registered."""
    assigned: Mapping[str, frozenset[int]]
    """The ids that each topic names, by topic id."""
    known: frozenset[int]
    """The ids that were ever registered."""

    @property
    def missing(self) -> frozenset[int]:
        """The ids that topics name and no broker has registered."""
        return frozenset().union(*self.assigned.values()) - self.registered.keys()


def host_states(seen: MetadataView) -> Iterator[HostIds]:
    """Yield the state after each record of the log of record."""
    state: HostIds | None = None
    for record in seen.log.records:
        before = state or HostIds(
            record=record, mappings={}, registered={}, assigned={}, known=frozenset()
        )
        state = replace(_after(before, record), record=record)
        yield state


def _after(state: HostIds, record: MetadataRecord) -> HostIds:
    name, broker_id = record.name, record.broker_id
    match record.type:
        case "BrokerHostRecord" if name is not None and broker_id is not None:
            return replace(state, mappings={**state.mappings, name: broker_id})
        case "RemoveBrokerHostRecord":
            return replace(state, mappings=_without(state.mappings, name))
        case "BrokerInfoRecord" if name is not None and broker_id is not None:
            registered = {**state.registered, broker_id: name}
            return replace(state, registered=registered, known=state.known | {broker_id})
        case "FenceBrokerRecord":
            return replace(state, registered=_without(state.registered, broker_id))
        case "RemoveTopicRecord":
            return replace(state, assigned=_without(state.assigned, record.topic_id))
        case _ if record.type in _PARTITIONS and record.topic_id is not None:
            ids = state.assigned.get(record.topic_id, frozenset()) | set(record.replicas or ())
            return replace(state, assigned={**state.assigned, record.topic_id: ids})
        case _:
            return state


def _without(items: Mapping[_Key, _Value], key: _Key | None) -> Mapping[_Key, _Value]:
    return {one: value for one, value in items.items() if one != key}
