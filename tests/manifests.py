"""The manifest of a recorded run of which a test states no more than it is about; its harness."""

from typing import Final

from fencepost.clusters.hosts.process import harness_mark
from fencepost.history.manifest import Manifest, Promises, RunState

MANIFEST: Final = Manifest(
    run_id="s/1",
    state=RunState.RECORDED,
    scenario="s",
    title="s",
    seed=1,
    started_at="2026-01-01T00:00:00+00:00",
    origin_ns=0,
    command="fencepost run s",
    fencepost_version="1",
    promises=Promises(idempotent=True, acks="all", consume="assign"),
)


def mark_of_a_reused_pid() -> str:
    """Return the mark of a harness that is gone, whose pid this process has now."""
    pid, started, namespace = harness_mark().split(":", 2)
    ticks, _, boot = started.partition("@")
    return f"{pid}:{int(ticks) - 1}@{boot}:{namespace}"
