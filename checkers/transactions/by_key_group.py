"""The checks of transactions that go key by key, as a group of the checker."""

from typing import Final

from checkers.cluster_checks import ClusterCheck, cluster_group
from checkers.transactions.by_key import precommitted_reads, skipped_sends
from checkers.transactions.entries import PRECOMMITTED_READ, SKIPPED_SEND

__all__ = ["TRANSACTIONS_BY_KEY"]

_TABLES: Final = ("records", "transactions")

TRANSACTIONS_BY_KEY: Final = cluster_group(
    "transactions by key",
    [
        ClusterCheck(entry=entry, kernel=kernel, tables=_TABLES, by_bucket=True)
        for entry, kernel in (
            (SKIPPED_SEND, skipped_sends),
            (PRECOMMITTED_READ, precommitted_reads),
        )
    ],
)
