"""Bodies of typed arrays: a header in JSON, then columns in little-endian order.

    uint32   the length of the header, in bytes
    header   JSON, padded with blanks so that the first column begins at a multiple of 8
    columns  each padded to a multiple of 8 bytes; the header has their names, types and lengths

A browser lays typed arrays over such a body without copying it.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fencepost.report.serve.timeline.block import Block

_NEVER: Final = -1.0


def columns_of(block: Block) -> dict[str, NDArray[Any]]:
    """Return the columns of events as the browser reads them.

    `time` in ns as float64, which is exact for a hundred days; `took` in ns as float32, -1: never.
    """
    took = np.where(block.until_ns < block.time_ns, _NEVER, block.until_ns - block.time_ns)
    return {
        "time": block.time_ns.astype("<f8"),
        "took": took.astype("<f4"),
        "row": block.row.astype("<f8"),
        "epoch": block.leader_epoch.astype("<i4"),
        "key": _small(block.key),
        "brokerEpoch": _small(block.broker_epoch),
        "lane": _small(block.lane),
        "peer": _small(block.peer),
        "link": _small(block.link),
        "what": _small(block.what),
        "error": _small(block.error),
        "fate": block.fate.astype("u1"),
        "kind": block.kind.astype("u1"),
    }


def body(header: Mapping[str, Any], columns: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the body. `header` may have any fields but `columns`."""
    told = [
        {"name": name, "type": column.dtype.str.lstrip("<|"), "length": column.size}
        for name, column in columns.items()
    ]
    text = json.dumps({**header, "columns": told}, separators=(",", ":")).encode()
    text += b" " * (-(4 + len(text)) % 8)
    parts = [len(text).to_bytes(4, "little"), text]
    for column in columns.values():
        data = np.ascontiguousarray(column).tobytes()
        parts += [data, b"\0" * (-len(data) % 8)]
    return b"".join(parts)


def _small(codes: NDArray[np.int64]) -> NDArray[Any]:
    """Return codes in 16 bits; in 32 where there are more words than that."""
    return codes.astype("<u2" if not codes.size or codes.max() < 1 << 16 else "<u4")
