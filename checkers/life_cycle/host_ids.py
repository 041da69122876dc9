"""L2 wrong-id, L4 wrong-host-mapping, L4b host-garbage: broker ids by host name.

A broker's id comes from the first of these that there is: its configuration, with which its disk
must agree if it has one; its disk; the id that
ZooKeeper keeps for its host, if no broker has that registered (step a); if step b is adopted,
the one id that topics name and no broker has registered, where several are an error; a new id. The
log has what ZooKeeper knew at the registration. The disk is known from the log, too: a host that
had an id has it on its disk, until a fault wiped that. Before its first registration it has the one
that is stated as `fencepost.disk.broker.id`, if any.

A broker reads some time before it registers, and what it read may have changed meanwhile. So a
registration is accused if its id was not the right one at any moment of the `READ_MS` before it,
or since its disk was wiped. A time in which it stood still, or could not reach ZooKeeper, does not
count.

Once registered, a broker writes its id under the name of its host; and an entry of another host
with that id is garbage, which the controller removes when it scans. Both are given `GRACE_MS`, the
second a scan besides. Only nodes that were told their `host.name` are judged, by what they were
told last before they registered.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.hosts import (
    REGISTRATION,
    HostIds,
    HostNode,
    Hosts,
    HostSettings,
    host_states,
    hosts_of,
)
from fencepost.checkers.metadata.records import MetadataRecord
from fencepost.checkers.metadata.view import METADATA, MetadataView, counted, doubtful
from fencepost.checkers.proof import Proof
from fencepost.checkers.standstills import Standstills
from fencepost.checkers.table_check import TableCheck

_NEEDS: Final = ("metadata_log", "transaction_log", "node_settings")

WRONG_ID_ENTRY: Final = CatalogueEntry.of(
    """L2 wrong-id: A broker took an id that is not its own.

    A host registered with another broker id than the first of these gives: its configuration, with
    which its disk agrees; its disk; the id that ZooKeeper keeps for it; the one missing id if that
    step is adopted; a new id. At no moment of the 10 s before, in which it could read, was it the
    right one.

    Meaning: A broker serves replicas that lie on another disk, or none at all.
    Case: a registration by a host that was told its name
    Source: Draft: broker ids by host name
    """,
    nearness=Nearness.REGISTRATION,
    culprit=("took {taken}",),
    variants={
        "its configuration ": "not-that-of-its-configuration",
        "its disk has": "not-that-of-its-disk",
        "ZooKeeper keeps for its host": "not-that-of-its-host",
        "topics name and no broker": "not-the-missing-one",
        "was never used": "not-a-new-one",
    },
    needs=_NEEDS,
)
WRONG_ID: Final = WRONG_ID_ENTRY.name
MAPPING_ENTRY: Final = CatalogueEntry.of(
    """L4 wrong-host-mapping: A host's id was not kept.

    10 s after a broker registered, and while it still is, ZooKeeper keeps another id for its host,
    or none.

    Meaning: When the host's disk is lost, its broker does not get its id back.
    Case: a registration that lasted for 10 s
    Source: Draft: broker ids by host name
    """,
    nearness=Nearness.REGISTRATION,
    needs=_NEEDS,
)
MAPPING: Final = MAPPING_ENTRY.name
GARBAGE_ENTRY: Final = CatalogueEntry.of(
    """L4b host-garbage: A host's entry outlived its use.

    ZooKeeper keeps an id for a host that another host has registered, for longer than the interval
    of scans and 10 s.

    Meaning: When the host comes back without a disk, it tries an id that is another's.
    Case: an entry whose id another host registered
    Source: Draft: broker ids by host name
    """,
    nearness=Nearness.REGISTRATION,
    needs=_NEEDS,
)
GARBAGE: Final = GARBAGE_ENTRY.name

READ_MS: Final = 10_000
GRACE_MS: Final = 10_000
_AGREED: Final = "its configuration and its disk agree on"
_CONFIGURED: Final = "its configuration has"
_ON_DISK: Final = "its disk has"
_OF_HOST: Final = "ZooKeeper keeps for its host"
_MISSING: Final = "topics name and no broker has registered"
_UNUSED: Final = "was never used (a new one)"
_NEW: Final = -1
"""Stands for an id that was never used."""


def wrong_ids(tables: Tables, seen: MetadataView) -> Judged:
    """Find registrations with an id that the procedure does not give. Reads `metadata_log`.

    And `node_settings` and `faults`.
    """
    return _answered(WRONG_ID, tables, seen, _ids_judged)


def wrong_mappings(tables: Tables, seen: MetadataView) -> Judged:
    """Find brokers whose id ZooKeeper does not keep for their host. Reads the same tables."""
    return _answered(MAPPING, tables, seen, _mappings_judged)


def host_garbage(tables: Tables, seen: MetadataView) -> Judged:
    """Find entries of hosts whose id another host has. Reads the same tables."""
    return _answered(GARBAGE, tables, seen, _garbage_judged)


_Judge = Callable[[Sequence[HostIds], Hosts, Standstills], Iterator[Proof | None]]


def _answered(check: str, tables: Tables, seen: MetadataView, judge: _Judge) -> Judged:
    if seen.log.doubt:
        yield from doubtful(check, seen.log.doubt)
        return
    hosts = hosts_of(tables, seen)
    states = list(host_states(seen)) if hosts.nodes else []
    yield METADATA, counted(check, METADATA, judge(states, hosts, Standstills.of(tables["faults"])))


def _ids_judged(
    states: Sequence[HostIds], hosts: Hosts, still: Standstills
) -> Iterator[Proof | None]:
    facts, outlived = hosts.facts, still.outlived
    last: dict[str, MetadataRecord] = {}
    """The last registration of each node, whose id is on its disk."""
    for place, state in enumerate(states):
        record = state.record
        is_new = record.type == REGISTRATION and not record.snapshot
        name = hosts.node_of(record) if is_new else None
        if name is not None:
            assert record.name is not None
            assert record.broker_id is not None
            node = hosts.nodes[name]
            span_ns = facts.earliest_ns(record.timestamp_ms), facts.latest_ns(record.timestamp_ms)
            recent = _recent(states, place, outlived, name, facts)
            right = [
                _right_ids(one, record.name, told, disk)
                for one in _readable(recent, node, _by_ns(record, facts), facts)
                for told in node.between(*span_ns)
                for disk in _disks(last.get(name), node, record, facts)
            ]
            if right:
                fits = any(_fits(record.broker_id, ids, one) for ids, one in right)
                yield None if fits else _wrong_id(record, *right[-1])
            last[name] = record


def _recent(
    states: Sequence[HostIds], place: int, still: Standstills, node: str, facts: Facts
) -> Sequence[HostIds]:
    """Return the states that held in the `READ_MS` before one, of which the node saw so much."""
    until_ns = facts.earliest_ns(states[place].record.timestamp_ms)
    first = place - 1
    while first > 0:
        since_ns = facts.latest_ns(states[first].record.timestamp_ms)
        acted_ns = still.acted_ns(since_ns, until_ns, node=node, hears_from=facts.controllers)
        if acted_ns > READ_MS * 1_000_000:
            break
        first -= 1
    return states[max(first, 0) : place]


def _readable(
    recent: Sequence[HostIds], node: HostNode, until_ns: int, facts: Facts
) -> Sequence[HostIds]:
    """Return the states that a registration may go by: those that held since the last wipe."""
    since_ns = max((one for one in node.wiped_ns if one <= until_ns), default=0)
    nexts = (*recent, None)[1:]
    return [
        one
        for one, after in zip(recent, nexts, strict=True)
        if after is None or facts.latest_ns(after.record.timestamp_ms) >= since_ns
    ]


def _by_ns(record: MetadataRecord, facts: Facts) -> int:
    """Return by when a wipe of a node's disk was surely there before its registration.

    The node was down then: that it came up tells which was first, where clocks are right.
    """
    return facts.time_ns(facts.first_ms(record.timestamp_ms) + 1)


def _disks(
    last: MetadataRecord | None, node: HostNode, record: MetadataRecord, facts: Facts
) -> Sequence[int | None]:
    """Return the ids that the node's disk can have had; None stands for none.

    A wrong clock may leave open if it was wiped since the last registration.
    """
    perhaps_ns, surely_ns = 0, 0
    if last is not None:
        perhaps_ns = facts.earliest_ns(last.timestamp_ms)
        surely_ns = facts.latest_ns(last.timestamp_ms)
    until_ns = _by_ns(record, facts)
    if any(surely_ns <= wiped_ns <= until_ns for wiped_ns in node.wiped_ns):
        return (None,)
    kept = node.first_disk if last is None else last.broker_id
    latest_ns = facts.latest_ns(record.timestamp_ms)
    wiped = any(perhaps_ns <= wiped_ns <= latest_ns for wiped_ns in node.wiped_ns)
    return (kept, None) if wiped else (kept,)


def _right_ids(
    state: HostIds, name: str, told: HostSettings, disk: int | None
) -> tuple[tuple[frozenset[int], str], HostIds]:
    """Return the ids that the procedure gives in a state, and by which source."""
    kept = state.mappings.get(name)
    missing = state.missing
    if told.configured >= 0 and disk not in (None, told.configured):
        found = frozenset[int](), _AGREED
    elif told.configured >= 0:
        found = frozenset((told.configured,)), _CONFIGURED
    elif disk is not None:
        found = frozenset((disk,)), _ON_DISK
    elif kept is not None and kept not in state.registered:
        found = frozenset((kept,)), _OF_HOST
    elif told.adopts and missing:
        alone = missing if len(missing) == 1 else frozenset[int]()
        found = alone, _MISSING
    else:
        found = frozenset((_NEW,)), _UNUSED
    return found, state


def _fits(broker_id: int, ids: tuple[frozenset[int], str], state: HostIds) -> bool:
    is_new = broker_id not in state.known and broker_id not in state.missing
    return broker_id in ids[0] or (_NEW in ids[0] and is_new)


def _wrong_id(record: MetadataRecord, ids: tuple[frozenset[int], str], state: HostIds) -> Proof:
    right = ", ".join(str(one) for one in sorted(ids[0] - {_NEW})) or "none of those in use"
    missing = ", ".join(map(str, sorted(state.missing))) or "none"
    taken = "a new one"
    if record.broker_id in state.missing | state.known:
        taken = "a missing one" if record.broker_id in state.missing else "a known one"
    return Proof.of(
        "host {host} registered with broker id {broker_id}, {taken}, at metadata offset "
        f"{{metadata_offset}}; the id that {ids[1]} is: {{right}} (ids that topics name and no "
        "broker has: {missing})",
        metadata_offsets={"metadata_offset": record.metadata_offset},
        sources=dict.fromkeys(("host", "broker_id"), "metadata_offset"),
        host=record.name,
        broker_id=record.broker_id,
        taken=taken,
        right=right,
        missing=missing,
    )


def _mappings_judged(
    states: Sequence[HostIds], hosts: Hosts, still: Standstills
) -> Iterator[Proof | None]:
    facts = hosts.facts
    names = {told.host for node in hosts.nodes.values() for told in node.told}
    for place, state in enumerate(states):
        record = state.record
        if record.type != REGISTRATION or record.name not in names:
            continue
        from_ns = facts.latest_ns(record.timestamp_ms)
        until_ns = from_ns + GRACE_MS * 1_000_000
        held = _held(islice(states, place, None), until_ns, record, facts)
        if held and _acted_ns(from_ns, until_ns, facts, still) == until_ns - from_ns:
            kept = held[-1].mappings.get(record.name or "")
            # Of several brokers on a host, the one that registered last has its entry.
            last = _registered_by(record.name, held)
            yield None if kept in last else _wrong_mapping(record, kept)


def _acted_ns(from_ns: int, until_ns: int, facts: Facts, still: Standstills) -> int:
    """Return the longest time between these in which ZooKeeper was there."""
    return still.acted_ns(from_ns, until_ns, node="", hears_from=facts.controllers)


def _registered_by(host: str | None, states: Sequence[HostIds]) -> frozenset[int | None]:
    """Return the ids that brokers on this host registered."""
    return frozenset(
        one.record.broker_id
        for one in states
        if one.record.type == REGISTRATION and one.record.name == host
    )


def _held(
    states: Iterable[HostIds], until_ns: int, record: MetadataRecord, facts: Facts
) -> Sequence[HostIds]:
    """Return the states up to one that surely held at that time or later.

    There are none if the registration did not last until then and beyond.
    """
    found: list[HostIds] = []
    for state in states:
        if facts.earliest_ns(state.record.timestamp_ms) > until_ns:
            return found
        held = record.broker_id is not None and state.registered.get(record.broker_id)
        if held != record.name:
            return ()
        found.append(state)
    return ()


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


def _garbage_judged(
    states: Sequence[HostIds], hosts: Hosts, still: Standstills
) -> Iterator[Proof | None]:
    facts = hosts.facts
    scans_ms = {told.scan_ms for node in hosts.nodes.values() for told in node.told}
    if 0 in scans_ms:
        return  # a controller that never scans promises nothing
    bound_ms = max(scans_ms, default=0) + GRACE_MS
    since: dict[tuple[str, int, str], MetadataRecord] = {}

    def is_late(begun: MetadataRecord, ended: MetadataRecord) -> bool:
        times_ns = facts.latest_ns(begun.timestamp_ms), facts.earliest_ns(ended.timestamp_ms)
        return _acted_ns(*times_ns, facts, still) > bound_ms * 1_000_000

    for state in states:
        now = {
            (entry, broker_id, state.registered[broker_id])
            for entry, broker_id in state.mappings.items()
            if state.registered.get(broker_id, entry) != entry
        }
        for gone in since.keys() - now:
            begun = since.pop(gone)
            yield _garbage(gone, begun, bound_ms) if is_late(begun, state.record) else None
        for one in now - since.keys():
            since[one] = state.record
    for one, begun in since.items():
        if is_late(begun, states[-1].record):
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


_TABLES: Final = ("metadata_log", "node_settings", "faults")

CHECKS: Final = (
    TableCheck(
        entry=WRONG_ID_ENTRY,
        kernel=wrong_ids,
        tables=_TABLES,
    ),
    TableCheck(
        entry=MAPPING_ENTRY,
        kernel=wrong_mappings,
        tables=_TABLES,
    ),
    TableCheck(
        entry=GARBAGE_ENTRY,
        kernel=host_garbage,
        tables=_TABLES,
    ),
)
