"""The times when a broker was surely one incarnation, and surely unfenced, by the metadata log."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.metadata.in_force import UNSURE, InForce, in_force
from fencepost.checkers.metadata.view import MetadataView


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIntervals:
    """The states of every broker over time, by its node, as far as they are sure."""

    incarnations: Mapping[str, InForce]
    """The first registrations of its incarnations: before them a broker answers no client."""
    states: Mapping[str, tuple[InForce, NDArray[np.bool_]]]
    """Its versions, and of each whether it was unfenced then."""

    def incarnation(
        self, node: str, from_ns: NDArray[np.int64], until_ns: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the incarnation's number that lived all through each of these times, or UNSURE."""
        if node not in self.incarnations:
            return np.full(len(from_ns), UNSURE, dtype=np.int64)
        return self.incarnations[node].all_through(from_ns, until_ns)

    def unfenced(
        self, node: str, from_ns: NDArray[np.int64], until_ns: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return whether the broker was surely unfenced all through each of these times."""
        if node not in self.states:
            return np.zeros(len(from_ns), dtype=np.bool_)
        states, unfenced = self.states[node]
        place = states.all_through(from_ns, until_ns)
        surely: NDArray[np.bool_] = (place != UNSURE) & unfenced[place]
        return surely


def broker_intervals(seen: MetadataView) -> BrokerIntervals:
    """Return the intervals of all brokers in the log of record."""
    nodes, facts = seen.facts.nodes(), seen.facts
    brokers = {nodes[one.broker_id]: one for one in seen.brokers.values() if one.broker_id in nodes}
    return BrokerIntervals(
        incarnations={
            node: in_force(
                (
                    one.timestamp_ms
                    for one in broker.registrations()
                    if broker.first_of_incarnation(one) == one
                ),
                facts,
            )
            for node, broker in brokers.items()
        },
        states={
            node: (
                in_force((one.timestamp_ms for one in broker.versions), facts),
                np.array([one.registered and not one.fenced for one in broker.versions]),
            )
            for node, broker in brokers.items()
        },
    )
