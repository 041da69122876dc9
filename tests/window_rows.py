"""Small tables of windows: each row says only how it differs from the usual one."""

from collections.abc import Mapping

import pyarrow as pa

from fencepost.history.cluster_schema import WINDOWS

_NS = 1_000_000_000


def windows_table(*windows: Mapping[str, object]) -> pa.Table:
    """WINDOWS of these; what one does not say is as of an AlterPartition that a kill struck."""
    usual = {
        "window": "mix-1",
        "kind": "AlterPartition request",
        "form": "window",
        "key": "t-0",
        "begin_ns": 10 * _NS,
        "held_ns": 11 * _NS,
        "struck": ["kill"],
        "strike_ns": 12 * _NS,
        "end_ns": 14 * _NS,
    }
    rows = [{"index": index} | usual | window for index, window in enumerate(windows)]
    return pa.Table.from_pylist(rows, schema=WINDOWS)


NEVER_OPENED: Mapping[str, object] = {"held_ns": None, "struck": [], "strike_ns": None}
UNUSED: Mapping[str, object] = {"struck": [], "strike_ns": None}
"""Parts of windows in which no strike took effect."""
