"""A small language for replicas on their disks, and for what was acknowledged.

`disks` takes a line a replica, all of key t-0 unless said:

    broker-1: 17@0 18@1 19@2:1 hw 3     values at offsets, the last one of leader epoch 1
    broker-2: nothing hw 0              an empty log
    broker-3: 17@0 end 5                it ends at 5; no checkpointed high watermark
    broker-3: 17@0 damaged              its end could not be read
    broker-3 u-1: marker@0 start 2      another key; a record without a value of the run; log start
    broker-3: 17@0 by 7/1               in epoch 1 of producer id 7

`sends` takes acknowledged sends of t-0: `17@0 at 900..950` (ms).
"""

import re
from typing import Any

import pyarrow as pa

from fencepost.history.cluster_schema import REPLICA_RECORDS, REPLICAS
from fencepost.history.schema import FAULTS, RECORDS

_MS = 1_000_000
_LINE = re.compile(r"(?P<node>\S+?)(?: (?P<key>\S+-\d+))?: (?P<rest>.*)")
_RECORD = re.compile(
    r"(?P<value>\d+|marker)@(?P<offset>\d+)(?::(?P<epoch>\d+))?"
    r"(?: by (?P<id>\d+)/(?P<own>\d+))?"
)


def disks(text: str) -> dict[str, pa.Table]:
    """The tables `replicas` and `replica_records` of these lines."""
    replicas: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    for line in filter(None, map(str.strip, text.strip().splitlines())):
        found = _LINE.fullmatch(line)
        assert found is not None, line
        node, key, rest = found["node"], found["key"] or "t-0", found["rest"]
        held = [_held(node, key, match) for match in _RECORD.finditer(rest)]
        told = dict(re.findall(r"(hw|end|start) (\d+)", rest))
        end = max([0, *(row["offset"] + 1 for row in held)])
        epochs: dict[int, int] = {}
        for row in held:
            epochs.setdefault(row["leader_epoch"], row["offset"])
        replicas.append(
            {
                "node": node,
                "key": key,
                "topic_id": f"id-{key.rpartition('-')[0]}",
                "log_start_offset": int(told.get("start", 0)),
                "log_end_offset": int(told.get("end", end)),
                "high_watermark": int(told["hw"]) if "hw" in told else None,
                "leader_epochs": [
                    {"leader_epoch": epoch, "start_offset": start}
                    for epoch, start in epochs.items()
                ],
                "record_count": len(held),
                "damage": "torn" if "damaged" in rest else None,
            }
        )
        records += held
    return {
        "replicas": pa.Table.from_pylist(replicas, schema=REPLICAS),
        "replica_records": pa.Table.from_pylist(records, schema=REPLICA_RECORDS),
    }


def _held(node: str, key: str, found: re.Match[str]) -> dict[str, Any]:
    ours = found["value"] != "marker"
    return {
        "key": key,
        "node": node,
        "offset": int(found["offset"]),
        "leader_epoch": int(found["epoch"] or 0),
        "timestamp_ms": 0,
        "control": not ours,
        "transactional": not ours,
        "producer_id": int(found["id"] or -1),
        "producer_epoch": int(found["own"] or -1),
        "value": int(found["value"]) if ours else None,
        "digest": int(found["value"]) if ours else -1,
    }


def sends(text: str, *, outcome: str = "ok") -> pa.Table:
    """RECORDS of these sends."""
    rows = []
    for number, line in enumerate(filter(None, map(str.strip, text.strip().splitlines()))):
        found = re.fullmatch(r"(\d+)@(\d+) at (\d+)\.\.(\d+)", line)
        assert found is not None, line
        rows.append(
            {
                "key": "t-0",
                "offset": int(found[2]),
                "value": int(found[1]),
                "operation": number,
                "position": 0,
                "process": 0,
                "f": "send",
                "outcome": outcome,
                "call_ns": int(found[3]) * _MS,
                "return_ns": int(found[4]) * _MS,
                "session": 0,
            }
        )
    return pa.Table.from_pylist(rows, schema=RECORDS)


def faults(*rows: tuple[str, str, int], healed: bool = True) -> pa.Table:
    """FAULTS of these (fault, node, begin in ms), each healed 100 ms later, or never."""
    return pa.Table.from_pylist(
        [
            {
                "index": index,
                "fault": fault,
                "targets": [node],
                "begin_ns": at_ms * _MS,
                "effect_ns": at_ms * _MS,
                "evidence": "made up",
                "end_ns": (at_ms + 100) * _MS if healed else None,
                "heal_evidence": "made up" if healed else None,
            }
            for index, (fault, node, at_ms) in enumerate(rows)
        ],
        schema=FAULTS,
    )
