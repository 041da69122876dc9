"""The notes of a simulated cluster's observer, as the tables that a real one records."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final, Self

from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.nodes.messages.client import MetadataResponse
from fencepost.clusters.reference.nodes.messages.control import DescribeQuorumResponse
from fencepost.clusters.reference.simulated.deferred import (
    Item,
    ReadBook,
    RowBook,
    last_offset,
    metadata_items,
)

OBSERVER: Final = -1
"""The process number of the harness's own reads."""
_RECORD_NS: Final = 1_000_000_000
"""The interval of records in a run of hours. A second is short against a session time-out."""


class RecordedNotebook:
    """A context manager; `observing.Notebook` into a run's raw directory."""

    def __init__(
        self,
        raw: Path,
        *,
        topics: Collection[str],
        node_of: Callable[[int], NodeName],
        record_ns: int = _RECORD_NS,
    ) -> None:
        """`record_ns`: what a broker shows unchanged is on record once in so long."""
        self._record_ns = record_ns
        self._topics = frozenset(topics)
        self._node_of = node_of
        self._reads = ReadBook(raw, writer="observer")
        self._offsets = RowBook(raw, "metadata_offsets")
        self._claims = RowBook(raw, "quorum_claims")
        self._last: dict[int, tuple[int, Any, tuple[Item, ...]]] = {}
        """The last record by broker: when the next is due, what it showed, and as items."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reads.close()
        self._offsets.close()
        self._claims.close()

    def shown(self, broker_id: int, call_ns: int, now_ns: int, response: MetadataResponse) -> None:
        """A broker showed its metadata."""
        due_ns, topics, last = self._last.get(broker_id, (0, None, ()))
        if response.topics is topics:  # brokers share this for as long as nothing changes
            items = last
        else:
            shown = metadata_items(response)
            items = tuple(one for one in shown if one["topic"] in self._topics)
        if items and (items != last or call_ns >= due_ns):
            self._last[broker_id] = (call_ns + self._record_ns, response.topics, items)
            node = self._node_of(broker_id)
            self._reads.add(
                OBSERVER,
                node,
                call_ns=call_ns,
                return_ns=now_ns,
                items=items,
                metadata_offset=last_offset(response.metadata_offset),
            )

    def described(self, asked_ns: int, answers: Mapping[int, DescribeQuorumResponse]) -> None:
        """Note that controllers described their quorum: its leader, each node's progress."""
        claims = {
            controller: answer
            for controller, answer in answers.items()
            if not answer.error and answer.leader_id == controller
        }
        for controller, answer in claims.items():
            self._claims.add(
                {
                    "time_ns": asked_ns,
                    "node": self._node_of(controller),
                    "controller_epoch": answer.epoch,
                }
            )
        if not claims:
            return
        latest = max(claims.values(), key=lambda answer: answer.epoch)
        for replica_id, end_offset, _, _ in (*latest.voters, *latest.observers):
            if end_offset > 0:
                self._offsets.add(
                    {
                        "time_ns": asked_ns,
                        "node": self._node_of(replica_id),
                        "metadata_offset": end_offset - 1,
                        "source": "quorum",
                    }
                )
