"""The reads in a simulated world, as lines of the journals that real readers write.

They are written as they come, and a long run keeps none of them in memory. Reads go into their
journal at the end, in the order of their calls: until then they lie beside it as they returned.
"""

import json
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.codec.identifiers import text_of
from fencepost.clusters.reference.nodes.messages.client import MetadataResponse
from fencepost.clusters.reference.simulated.error_names import error_name
from fencepost.history.cluster_schema import CLUSTER_TABLES
from fencepost.history.journal import journal_path

_WAITING_MAX: Final = 4096

Item = dict[str, Any]
"""Columns of `describes` that one partition or topic has to itself."""


class ReadBook:
    """The reads of one writer; `close` writes them into the run's raw directory."""

    def __init__(self, raw: Path, *, writer: str) -> None:
        self._path = journal_path(raw, "describes", writer=writer)
        self._returned = _Lines(self._path.with_suffix(".returned"))
        self._calls = array("q")
        """When each was called, in the order in which they returned."""
        self._begins = array("q", [0])
        """Where each begins in the file, and where the next one will."""

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
        line = f'"columns": {json.dumps(columns)}, "items": {json.dumps(items)}}}\n'.encode()
        self._returned.add(line)
        self._calls.append(call_ns)
        self._begins.append(self._begins[-1] + len(line))

    def close(self) -> None:
        """Write all, numbered in the order of their calls."""
        in_turn = sorted(range(len(self._calls)), key=self._calls.__getitem__)
        self._returned.close()
        with self._returned.path.open("rb") as returned, self._path.open("xb") as file:
            for number, place in enumerate(in_turn):
                begin, end = self._begins[place : place + 2]
                returned.seek(begin)
                file.write(b'{"read": %d, ' % number + returned.read(end - begin))
        self._returned.path.unlink()


class RowBook:
    """Rows of one table, written into the run's raw directory as they come."""

    def __init__(self, raw: Path, table: str) -> None:
        self._columns = frozenset(CLUSTER_TABLES[table].names)
        self._lines = _Lines(journal_path(raw, table))

    def add(self, row: Mapping[str, object]) -> None:
        """A row; columns that are left out are null."""
        assert row.keys() <= self._columns, row.keys() - self._columns
        self._lines.add(f"{json.dumps(row)}\n".encode())

    def close(self) -> None:
        """Write what is not written yet."""
        self._lines.close()


class _Lines:
    """A new file that takes lines, and is open only while thousands of them are written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch(exist_ok=False)
        self._waiting: list[bytes] = []

    def add(self, line: bytes) -> None:
        self._waiting.append(line)
        if len(self._waiting) >= _WAITING_MAX:
            self.close()

    def close(self) -> None:
        with self.path.open("ab") as file:
            file.writelines(self._waiting)
        self._waiting.clear()


def last_offset(end_offset: int) -> int | None:
    """The last metadata offset of an answer that states the end of what it accounts for."""
    return end_offset - 1 if end_offset > 0 else None


def metadata_items(response: MetadataResponse) -> tuple[Item, ...]:
    """A row a partition; one without a partition for a topic that the broker does not know."""
    found: list[Item] = []
    for name, topic_id, error, partitions in response.topics:
        if error or not partitions:
            found.append({"topic": name, "error": error_name(error)})
            continue
        shared = {"topic": name, "topic_id": text_of(topic_id) if topic_id > 0 else None}
        found += [
            {
                **shared,
                "partition": one.partition,
                "error": error_name(one.error),
                "leader": one.leader_id,
                "leader_epoch": one.leader_epoch,
                "isr": list(one.isr),
                "replicas": list(one.replicas),
            }
            for one in partitions
        ]
    return tuple(found)
