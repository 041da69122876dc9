"""L2 wrong-id, L4 wrong-host-mapping, L4b host-garbage: broker ids by host name.

A broker's id comes from the first of these that there is: its configuration; its disk; the id that
ZooKeeper keeps for its host, if no broker has that registered (step a); if step b is adopted,
the one id that topics name and no broker has registered, where several are an error; a new id. The
log has what ZooKeeper knew at the registration. The disk is known from the log, too: a host that
had an id has it on its disk, until a fault wiped that. Before its first registration it has the one
that is stated as `fencepost.disk.broker.id`, if any.

A broker reads some time before it registers, and what it read may have changed meanwhile. So a
registration is accused if its id was not the right one at any moment of the `READ_MS` before it.

Once registered, a broker writes its id under the name of its host; and an entry of another host
with that id is garbage, which the controller removes when it scans. Both are given `GRACE_MS`, the
second a scan besides. Only nodes that were told their `host.name` are judged, by what they were
told last before they registered.

Source: the draft on broker ids by host name.
"""

import json
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from checkers.entry import Entry
from checkers.facts import Facts, Judged, Tables
from checkers.metadata.broker_hosts import HostState, host_states
from checkers.metadata.records import MetadataRecord
from checkers.metadata.view import METADATA, View, counted, doubtful
from checkers.proof import Proof
from checkers.table_check import TableCheck

__all__ = ["CHECKS", "GARBAGE", "MAPPING", "READ_MS", "WRONG_ID"]

WRONG_ID: Final = "wrong-id"
MAPPING: Final = "wrong-host-mapping"
GARBAGE: Final = "host-garbage"

READ_MS: Final = 10_000
GRACE_MS: Final = 10_000
_ADOPTS: Final = "fencepost.broker.id.adopt.missing"
_SCAN: Final = "fencepost.host.garbage.interval.ms"
_DISK: Final = "fencepost.disk.broker.id"
_SCAN_MS: Final = 60_000
"""The default of `_SCAN`."""
_HOST_OF: Final = re.compile(r"^.*://|:\d+$")
"""All of a listener but its host."""
_REGISTRATION: Final = "BrokerInfoRecord"
_NEW: Final = -1
"""Stands for an id that was never used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """The settings that a node runs with if it starts then."""

    since_ns: int
    host: str
    configured: int
    adopts: bool
    scan_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """A node that was told its host's name, and the times at which its disk was wiped."""

    told: Sequence[_Told]
    wiped_ns: Sequence[int]
    first_disk: int | None
    """The id that its disk had before the first start."""

    def at(self, time_ns: int) -> _Told:
        """Return the settings that a start at that time reads."""
        return next((one for one in reversed(self.told) if one.since_ns <= time_ns), self.told[0])


def wrong_ids(tables: Tables, seen: View) -> Judged:
    """Find registrations with an id that the procedure does not give. Reads `metadata_log`.

    And `node_settings` and `faults`.
    """
    return _answered(WRONG_ID, tables, seen, _ids_judged)


def wrong_mappings(tables: Tables, seen: View) -> Judged:
    """Find brokers whose id ZooKeeper does not keep for their host. Reads the same tables."""
    return _answered(MAPPING, tables, seen, _mappings_judged)


def host_garbage(tables: Tables, seen: View) -> Judged:
    """Find entries of hosts whose id another host has. Reads the same tables."""
    return _answered(GARBAGE, tables, seen, _garbage_judged)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hosts:
    """The evidence beside the log."""

    nodes: Mapping[str, _Node]
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
        until_ns = self.facts.latest_ns(record.timestamp_ms)
        there = [name for name, one in self.nodes.items() if one.at(until_ns).host == record.name]
        return there[0] if len(there) == 1 else None


_Judge = Callable[[Sequence[HostState], _Hosts], Iterator[Proof | None]]


def _answered(check: str, tables: Tables, seen: View, judge: _Judge) -> Judged:
    if seen.log.doubt:
        yield from doubtful(check, seen.log.doubt)
        return
    nodes = _nodes(tables["node_settings"], tables["faults"])
    states = list(host_states(seen)) if nodes else []
    hosts = _Hosts(
        nodes=nodes, registered_by=_by_listeners(tables["metadata_log"], nodes), facts=seen.facts
    )
    yield METADATA, counted(check, METADATA, judge(states, hosts))


def _nodes(settings: pa.Table, faults: pa.Table) -> Mapping[str, _Node]:
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
        node: _Node(
            told=_told(one),
            wiped_ns=wiped.get(node, ()),
            first_disk=next((int(each[_DISK]) for each in one.values() if _DISK in each), None),
        )
        for node, one in given.items()
        if any("host.name" in each for each in one.values())
    }


def _told(given: Mapping[int, Mapping[str, str]]) -> Sequence[_Told]:
    found: list[_Told] = []
    now: dict[str, str] = {}
    for since_ns, settings in sorted(given.items()):
        now |= settings
        found.append(
            _Told(
                since_ns=since_ns,
                host=now.get("host.name", ""),
                configured=int(now.get("broker.id", _NEW)),
                adopts=now.get(_ADOPTS) == "true",
                scan_ms=int(now.get(_SCAN, _SCAN_MS)),
            )
        )
    return found


def _by_listeners(metadata_log: pa.Table, nodes: Collection[str]) -> Mapping[int, str]:
    """Return the node of each registration whose listeners name one, by metadata offset."""
    made = metadata_log.filter(pc.equal(metadata_log["type"], _REGISTRATION))
    found: dict[int, str] = {}
    for row in made.select(["metadata_offset", "detail"]).to_pylist():
        listeners = json.loads(row["detail"] or "{}").get("endpoints", ())
        names = {_HOST_OF.sub("", one).partition(".")[0] for one in listeners}
        for node in names.intersection(nodes):
            found[row["metadata_offset"]] = node
    return found


def _ids_judged(states: Sequence[HostState], hosts: _Hosts) -> Iterator[Proof | None]:
    facts = hosts.facts
    recent: deque[HostState] = deque()
    disks: dict[str, MetadataRecord] = {}
    """The last registration of each node, whose id is on its disk."""
    for state in states:
        record = state.record
        while len(recent) > 1 and recent[1].record.timestamp_ms < record.timestamp_ms - READ_MS:
            recent.popleft()
        is_new = record.type == _REGISTRATION and not record.snapshot
        name = hosts.node_of(record) if is_new else None
        if name is not None:
            assert record.name is not None
            assert record.broker_id is not None
            node = hosts.nodes[name]
            told = node.at(facts.latest_ns(record.timestamp_ms))
            disk = _disk(disks.get(name), node, record, facts)
            right = [_right_ids(one, record.name, told, disk) for one in recent]
            if right:
                fits = any(_fits(record.broker_id, ids, one) for ids, one in right)
                yield None if fits else _wrong_id(record, *right[-1])
            disks[name] = record
        recent.append(state)


def _disk(
    last: MetadataRecord | None, node: _Node, record: MetadataRecord, facts: Facts
) -> int | None:
    """Return the id on the node's disk; None if it has none, or was wiped."""
    from_ns = 0 if last is None else facts.earliest_ns(last.timestamp_ms)
    until_ns = facts.latest_ns(record.timestamp_ms)
    if any(from_ns <= wiped_ns <= until_ns for wiped_ns in node.wiped_ns):
        return None
    return node.first_disk if last is None else last.broker_id


def _right_ids(
    state: HostState, name: str, told: _Told, disk: int | None
) -> tuple[tuple[frozenset[int], str], HostState]:
    """Return the ids that the procedure gives in a state, and by which source."""
    kept = state.mappings.get(name)
    missing = state.missing
    if told.configured >= 0:
        found = frozenset((told.configured,)), "its configuration has"
    elif disk is not None:
        found = frozenset((disk,)), "its disk has"
    elif kept is not None and kept not in state.registered:
        found = frozenset((kept,)), "ZooKeeper keeps for its host"
    elif told.adopts and missing:
        alone = missing if len(missing) == 1 else frozenset[int]()
        found = alone, "topics name and no broker has registered"
    else:
        found = frozenset((_NEW,)), "was never used (a new one)"
    return found, state


def _fits(broker_id: int, ids: tuple[frozenset[int], str], state: HostState) -> bool:
    is_new = broker_id not in state.known and broker_id not in state.missing
    return broker_id in ids[0] or (_NEW in ids[0] and is_new)


def _wrong_id(record: MetadataRecord, ids: tuple[frozenset[int], str], state: HostState) -> Proof:
    right = ", ".join(str(one) for one in sorted(ids[0] - {_NEW})) or "none of those in use"
    missing = ", ".join(map(str, sorted(state.missing))) or "none"
    return Proof.of(
        "host {host} registered with broker id {broker_id} at metadata offset {metadata_offset}; "
        "the id that {source} is: {right} (ids that topics name and no broker has: {missing})",
        metadata_offsets={"metadata_offset": record.metadata_offset},
        sources=dict.fromkeys(("host", "broker_id"), "metadata_offset"),
        host=record.name,
        broker_id=record.broker_id,
        source=ids[1],
        right=right,
        missing=missing,
    )


def _mappings_judged(states: Sequence[HostState], hosts: _Hosts) -> Iterator[Proof | None]:
    names = {told.host for node in hosts.nodes.values() for told in node.told}
    for place, state in enumerate(states):
        record = state.record
        if record.type != _REGISTRATION or record.name not in names:
            continue
        later = _held(states[place:], record.timestamp_ms + GRACE_MS, record)
        if later is not None:
            kept = later.mappings.get(record.name or "")
            # Of several brokers on a host, the one that registered last has its entry.
            last = _registered_by(record.name, states[place:], later)
            yield None if kept in last else _wrong_mapping(record, kept)


def _registered_by(
    host: str | None, states: Sequence[HostState], until: HostState
) -> frozenset[int | None]:
    """Return the ids that brokers on this host registered, from the first state on."""
    end_ms = until.record.timestamp_ms
    return frozenset(
        one.record.broker_id
        for one in states
        if one.record.type == _REGISTRATION
        and one.record.name == host
        and one.record.timestamp_ms <= end_ms
    )


def _held(states: Sequence[HostState], until_ms: int, record: MetadataRecord) -> HostState | None:
    """Return the state at that time, if the registration lasts until then and beyond."""
    last = None
    for state in states:
        if state.record.timestamp_ms > until_ms:
            return last
        held = record.broker_id is not None and state.registered.get(record.broker_id)
        if held != record.name:
            return None
        last = state
    return None


def _wrong_mapping(record: MetadataRecord, kept: int | None) -> Proof:
    return Proof.of(
        "host {host} registered with broker id {broker_id} at metadata offset {metadata_offset}, "
        "and {grace} later ZooKeeper keeps {kept} for it",
        metadata_offsets={"metadata_offset": record.metadata_offset},
        durations={"grace": GRACE_MS * 1_000_000},
        sources=dict.fromkeys(("host", "broker_id"), "metadata_offset"),
        host=record.name,
        broker_id=record.broker_id,
        kept=Proof.of("no id") if kept is None else Proof.of("id {kept_id}", kept_id=kept),
    )


def _garbage_judged(states: Sequence[HostState], hosts: _Hosts) -> Iterator[Proof | None]:
    scans_ms = {told.scan_ms for node in hosts.nodes.values() for told in node.told}
    if 0 in scans_ms:
        return  # a controller that never scans promises nothing
    bound_ms = max(scans_ms, default=0) + GRACE_MS
    since: dict[tuple[str, int, str], MetadataRecord] = {}
    ends_ms = states[-1].record.timestamp_ms if states else 0
    for state in states:
        now = {
            (entry, broker_id, state.registered[broker_id])
            for entry, broker_id in state.mappings.items()
            if state.registered.get(broker_id, entry) != entry
        }
        for gone in since.keys() - now:
            begun = since.pop(gone)
            late = state.record.timestamp_ms - begun.timestamp_ms > bound_ms
            yield _garbage(gone, begun, bound_ms) if late else None
        for one in now - since.keys():
            since[one] = state.record
    for one, begun in since.items():
        if ends_ms - begun.timestamp_ms > bound_ms:
            yield _garbage(one, begun, bound_ms)


def _garbage(entry: tuple[str, int, str], begun: MetadataRecord, bound_ms: int) -> Proof:
    host, broker_id, other = entry
    return Proof.of(
        "the entry of host {host} has broker id {broker_id}, which host {other} has registered, "
        "since metadata offset {metadata_offset} and for more than {bound}",
        metadata_offsets={"metadata_offset": begun.metadata_offset},
        durations={"bound": bound_ms * 1_000_000},
        host=host,
        broker_id=broker_id,
        other=other,
    )


_SOURCE: Final = "Draft: broker ids by host name"
_NEEDS: Final = ("metadata_log", "transaction_log", "node_settings")
_TABLES: Final = ("metadata_log", "node_settings", "faults")

CHECKS: Final = (
    TableCheck(
        entry=Entry(
            id="L2",
            name=WRONG_ID,
            title="A broker took an id that is not its own",
            rule="A host registered with another broker id than the first of these gives: its "
            "configuration, its disk, the id that ZooKeeper keeps for it, the one missing id if "
            "that step is adopted, a new id; at no moment of the 10 s before was it the right one.",
            meaning="A broker serves replicas that lie on another disk, or none at all.",
            case="a registration by a host that was told its name",
            source=_SOURCE,
            needs=_NEEDS,
        ),
        kernel=wrong_ids,
        tables=_TABLES,
    ),
    TableCheck(
        entry=Entry(
            id="L4",
            name=MAPPING,
            title="A host's id was not kept",
            rule="10 s after a broker registered, and while it still is, ZooKeeper keeps another "
            "id for its host, or none.",
            meaning="When the host's disk is lost, its broker does not get its id back.",
            case="a registration that lasted for 10 s",
            source=_SOURCE,
            needs=_NEEDS,
        ),
        kernel=wrong_mappings,
        tables=_TABLES,
    ),
    TableCheck(
        entry=Entry(
            id="L4b",
            name=GARBAGE,
            title="A host's entry outlived its use",
            rule="ZooKeeper keeps an id for a host that another host has registered, for longer "
            "than the interval of scans and 10 s.",
            meaning="When the host comes back without a disk, it tries an id that is another's.",
            case="an entry whose id another host registered",
            source=_SOURCE,
            needs=_NEEDS,
        ),
        kernel=host_garbage,
        tables=_TABLES,
    ),
)
