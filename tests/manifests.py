"""The manifest of a recorded run of which a test states no more than it is about."""

from typing import Final

from history.manifest import Manifest, Promises, RunState

__all__ = ["MANIFEST"]

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
