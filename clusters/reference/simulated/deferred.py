"""The reads in a simulated world, as lines of the journals that real readers write.

Kept until the end and written in the order of their calls: what a process that may be killed has to
write down at once, a simulated one does all again from its seed.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clusters.port import NodeName
from clusters.reference.codec.identifiers import text_of
from clusters.reference.nodes.errors import ERROR_NAMES
from clusters.reference.nodes.messages.client import MetadataResponse
from history.cluster_schema import CLUSTER_TABLES
from history.journal import journal_path

__all__ = ["ReadBook", "RowBook", "last_offset", "metadata_items"]

Item = dict[str, Any]
"""Columns of `describes` that one partition or topic has to itself."""


class ReadBook:
    """The reads of one writer; `close` writes them into the run's raw directory."""

    def __init__(self, raw: Path, *, writer: str) -> None:
        self._path = journal_path(raw, "describes", writer=writer)
        self._reads: list[tuple[int, int, Item, Sequence[Item]]] = []

    def add(
        self,
        process: int,
        node: NodeName,
        *,
        call_ns: int,
        return_ns: int,
        items: Sequence[Item],
        metadata_offset: int | None = None,
    ) -> None:
        """A read that has returned; `metadata_offset`: the last that the answer accounts for."""
        columns: Item = {
            "call_ns": call_ns,
            "return_ns": return_ns,
            "process": process,
            "node": node,
            "metadata_offset": metadata_offset,
        }
        self._reads.append((call_ns, len(self._reads), columns, items))

    def close(self) -> None:
        """Write all, numbered in the order of their calls."""
        self._reads.sort(key=lambda read: read[:2])
        with self._path.open("x", encoding="utf-8") as file:
            for number, (_, _, columns, items) in enumerate(self._reads):
                line = {"read": number, "columns": columns, "items": items}
                file.write(f"{json.dumps(line)}\n")


class RowBook:
    """Rows of one table; `close` writes them into the run's raw directory."""

    def __init__(self, raw: Path, table: str) -> None:
        self._columns = frozenset(CLUSTER_TABLES[table].names)
        self._path = journal_path(raw, table)
        self._lines: list[str] = []

    def add(self, row: Mapping[str, object]) -> None:
        """A row; columns that are left out are null."""
        assert row.keys() <= self._columns, row.keys() - self._columns
        self._lines.append(f"{json.dumps(row)}\n")

    def close(self) -> None:
        """Write all, as they came."""
        with self._path.open("x", encoding="utf-8") as file:
            file.writelines(self._lines)


def last_offset(end_offset: int) -> int | None:
    """The last metadata offset of an answer that states the end of what it accounts for."""
    return end_offset - 1 if end_offset > 0 else None


def metadata_items(response: MetadataResponse) -> tuple[Item, ...]:
    """A row a partition; one without a partition for a topic that the broker does not know."""
    found: list[Item] = []
    for name, topic_id, error, partitions in response.topics:
        if error or not partitions:
            found.append({"topic": name, "error": ERROR_NAMES[error]})
            continue
        shared = {"topic": name, "topic_id": text_of(topic_id) if topic_id > 0 else None}
        found += [
            {
                **shared,
                "partition": one.partition,
                "error": ERROR_NAMES[one.error],
                "leader": one.leader_id,
                "leader_epoch": one.leader_epoch,
                "isr": list(one.isr),
                "replicas": list(one.replicas),
            }
            for one in partitions
        ]
    return tuple(found)
