"""Releases and feature levels of a cluster that go up, or down, while it runs.

Binaries and metadata.version move apart, as an operator moves them: a node that is down gets
another release for its next start, on the disk that it has; and the metadata.version is finalised
when every node knows it. What became of the versions under test is kept, with its time.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

from clusters.kafka.admin import KafkaAdmin, Nodes
from clusters.kafka.features import Levels, finalised_by, moves, update_features
from clusters.kafka.prepared import KafkaPrepared
from clusters.port import NodeName
from history.clock import Clock
from history.failure import HarnessError
from history.manifest import Change

__all__ = ["Upgrades"]

_ATTEMPT_S: Final = 5.0
_POLL_S: Final = 0.05


class Upgrades:
    """The abilities `clusters.evolution.ChangesReleases` and `Finalises`, for Kafka's clusters.

    `prepared`: the release that every node starts on, with all others that the run may come to.
    """

    def __init__(
        self,
        prepared: KafkaPrepared,
        *,
        clock: Clock,
        admin: KafkaAdmin,
        leader: Nodes,
        brokers: Nodes,
    ) -> None:
        self._prepared = prepared
        self._clock = clock
        self._admin = admin
        self._leader = leader
        self._brokers = brokers
        self._changes: list[Change] = []

    def changes(self) -> tuple[Change, ...]:
        """Return the changes of the versions under test so far, in order."""
        return tuple(self._changes)

    def change_release(
        self, node: NodeName, release: str, use: Callable[[KafkaPrepared], str]
    ) -> str:
        """Have the node run the release from its next start on; `use` says what it ran before."""
        all_of_run = {self._prepared.release.name: self._prepared, **self._prepared.also}
        if release not in all_of_run:
            there = ", ".join(all_of_run)
            raise HarnessError(f"Kafka {release} was not prepared for this run; there are: {there}")
        found = all_of_run[release]
        before = use(found)
        self._note(node, found.release.version)
        return f"{node}: was of Kafka {before}, and is of {found.release.version}"

    def finalise(self, version: str, *, within_s: float) -> str:
        """Have the levels of that metadata.version; returns once every running broker has them."""
        wanted = self._prepared.levels.get(version)
        if wanted is None:
            raise HarnessError(f"metadata.version {version} was not prepared for this run")
        deadline = time.monotonic() + within_s
        now = self._levels_now(deadline)
        moved = moves(now, wanted)
        said = ", ".join(f"{name} {now.get(name, 0)} → {moved[name]}" for name in moved)
        if not moved:
            return f"metadata.version {version} was finalised already"
        write = update_features(now, moved, timeout_s=_ATTEMPT_S)
        asked, _ = self._admin.insist(
            write, what=f"finalise {version} ({said})", via=None, deadline=deadline
        )
        for name, level in moved.items():
            self._note(name, f"level {level}, of metadata.version {version}")
        seen = self._await_levels(moved, deadline)
        return f"{asked} finalised {said}; shown by {seen}"

    def _levels_now(self, deadline: float) -> Levels:
        while True:
            for levels in finalised_by(self._leader()).values():
                return levels
            if time.monotonic() > deadline:
                raise HarnessError("no active controller told which levels are finalised")
            time.sleep(_POLL_S)

    def _await_levels(self, moved: Levels, deadline: float) -> str:
        """Wait until all brokers that run show these levels; their names."""
        while True:
            running = self._brokers()
            shown = finalised_by(running)
            lacking = {name for name in running if not _has(shown.get(name), moved)}
            if not lacking:
                return ", ".join(sorted(running))
            if time.monotonic() > deadline:
                raise HarnessError(
                    f"the new levels were not seen on {', '.join(sorted(lacking))} in time"
                )
            time.sleep(_POLL_S)

    def _note(self, subject: str, version: str) -> None:
        change = Change(time_ns=self._clock.now_ns(), subject=subject, version=version)
        self._changes.append(change)


def _has(levels: Mapping[str, int] | None, moved: Levels) -> bool:
    return levels is not None and all(levels.get(one, 0) == to for one, to in moved.items())
