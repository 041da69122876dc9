"""The log of a simulated server as the file that a real one writes, for the very same witness.

The format is that of `clusters.zookeeper.stored.logs`; a transaction has no digest of the tree, as
before release 3.6.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from fencepost.clusters.data_tree.transactions import Transaction
from fencepost.clusters.protocol.zookeeper_transactions import encoded_transaction
from fencepost.clusters.zookeeper.stored.logs import file_header, framed


def write_log(data: Path, transactions: Iterable[Transaction], *, origin_ms: int) -> None:
    """Write a data directory with these transactions. `origin_ms`: the wall clock at time 0."""
    home = data / "version-2"
    home.mkdir(parents=True)
    found = list(transactions)
    first = found[0].zxid if found else 0
    with (home / f"log.{first:x}").open("wb") as file:
        file.write(file_header())
        for one in found:
            file.write(framed(encoded_transaction(replace(one, time_ms=origin_ms + one.time_ms))))
