"""The requests of data that brokers answered to clients, read from the tape.

The tape has some of clients' Produces and Fetches and their answers (`nemesis.wire.served` says
which), where clients' links are on it. The link names the broker. A request counts as answered if
its answer came from the broker and has no error, or none for one of its partitions: what a broker
refuses it does not serve. A request that is not there proves nothing.
"""

from array import array
from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.metadata.exchanges import BY_PROXY, CORRELATION
from fencepost.checkers.metadata.rpcs import UNREACHED
from fencepost.checkers.sources import Source

CLIENTS: Final = "clients"
"""The source of links that are of no node."""
DATA_APIS: Final = ("Produce", "Fetch")
_COLUMNS: Final = (
    # The rows of a slice are chosen by `item`, too.
    *("frame", "item", "time_ns", "direction", "connection", CORRELATION),
    *("api", "source", "target", "action", "error"),
)


def is_data_of_clients(wire: pa.RecordBatch) -> pa.Array:
    """Return which rows of a tape are about clients' requests of data; none without `source`."""
    if "source" not in wire.schema.names:
        return pa.repeat(pa.scalar(value=False), len(wire))
    of_data = pc.is_in(wire.column("api"), pa.array(DATA_APIS))
    return pc.and_(of_data, pc.equal(wire.column("source"), CLIENTS))


def answered_data(wire: Source) -> Mapping[str, NDArray[np.int64]]:
    """Return for each broker what it answered, a row each, in the order of the answers.

    A row is (when the request had arrived at the proxy, when the answer had, the request's frame):
    the broker had the request no earlier, and answered it no later. A night has a million of them.
    """
    asked: dict[tuple[int, int, str], tuple[int, int]] = {}
    found: dict[str, array[int]] = {}
    for batch in wire(_COLUMNS):
        for row in batch.filter(is_data_of_clients(batch)).to_pylist():
            exchange = (row["connection"], row[CORRELATION], row["api"])
            if row["direction"] == "request":
                if row["action"] not in UNREACHED:
                    asked[exchange] = (row["time_ns"], row["frame"])
            elif row["error"] == "NONE" and row["action"] != BY_PROXY and exchange in asked:
                asked_ns, frame = asked.pop(exchange)
                answered = found.setdefault(row["target"], array("q"))
                answered.extend((asked_ns, row["time_ns"], frame))
    return {node: np.array(rows, np.int64).reshape(-1, 3) for node, rows in found.items()}
