"""Hosts, broker ids and registrations, as a log of record of ZooKeeper's has them over time.

`/brokers/hosts/H` has the id that a broker on host H registered with last; `/brokers/ids/N` the
host that has id N now; topics name ids as replicas. After each record there is a state of these.

Source: the draft on broker ids by host name ("Persisting (Hostname, Broker Id) Mapping").
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from checkers.metadata.records import MetadataRecord
from checkers.metadata.view import View

__all__ = ["HostState", "host_states"]

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_PARTITIONS: Final = ("PartitionRecord", "PartitionChangeRecord")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
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


def host_states(seen: View) -> Iterator[HostState]:
    """Yield the state after each record of the log of record."""
    state: HostState | None = None
    for record in seen.log.records:
        before = state or HostState(
            record=record, mappings={}, registered={}, assigned={}, known=frozenset()
        )
        state = replace(_after(before, record), record=record)
        yield state


def _after(state: HostState, record: MetadataRecord) -> HostState:
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
