"""The check that no operation of a run is missing, from the counts of its sealed files."""

from collections.abc import Sequence
from typing import Protocol

from fencepost.checkers.verdict import CheckResult, Validity


class CountsOperations(Protocol):
    """The operations of one file, counted."""

    @property
    def row_count(self) -> int:
        """The number of operations."""

    @property
    def first_index(self) -> int | None:
        """The least index of an operation; None without one."""

    @property
    def last_index(self) -> int | None:
        """The greatest index of an operation; None without one."""


def whole_operations(
    check: str, files: Sequence[CountsOperations], unreadable: Sequence[str]
) -> CheckResult:
    """Return whether the indices of all files are dense from 0; `unreadable`: why others are not.

    An operation that is not whole is unknown.
    """
    count = sum(one.row_count for one in files)
    first = min((one.first_index for one in files if one.first_index is not None), default=0)
    last = max((one.last_index for one in files if one.last_index is not None), default=-1)
    reason = "; ".join(unreadable)
    if not reason and (first != 0 or last != count - 1):
        reason = f"there are {count} operations, and their indices go from {first} to {last}"
    validity = Validity.UNKNOWN if reason else Validity.VALID
    return CheckResult(check=check, validity=validity, case_count=count, reason=reason)
