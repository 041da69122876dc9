"""The check of what groups are told of their offsets, as a group of the checker."""

from typing import Final

from checkers.check_group import CheckGroup
from checkers.cluster_checks import ClusterCheck, cluster_group
from checkers.transactions.entries import GROUP_OFFSET
from checkers.transactions.group_offsets import wrong_group_offsets

__all__ = ["GROUP_OFFSETS_GROUP"]

GROUP_OFFSETS_GROUP: Final[CheckGroup] = cluster_group(
    "the offsets of groups",
    [ClusterCheck(entry=GROUP_OFFSET, kernel=wrong_group_offsets, tables=GROUP_OFFSET.needs)],
)
