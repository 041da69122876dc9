"""The conditions on an ensemble: who leads, who follows, who has applied what.

`{led: true}`, `{leader: server-2}`, `{follows: server-1}`, `{caught_up: server-1}`,
`{last_zxid: {server-1: 0x100000005}}`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from fencepost.clusters.observation import Condition, Observation, Parse, node_of
from fencepost.clusters.port import NodeName
from fencepost.clusters.stage import Stage
from fencepost.clusters.zookeeper.view import EnsembleView, zxid_text
from fencepost.history.failure import SpecError


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleLed:
    """One server leads a majority of the ensemble, or none leads."""

    led: bool
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        view: EnsembleView | None = now.view
        if view is None:
            return not self.led
        return (2 * len(view.taking_part) > len(now.broker_ids)) is self.led

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"led": self.led}


@dataclass(frozen=True, slots=True, kw_only=True)
class Leads:
    """This server leads."""

    node: NodeName
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        view: EnsembleView | None = now.view
        return view is not None and view.leader == now.broker_ids[self.node]

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"leader": str(self.node)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowsLeader:
    """This server follows a leader and serves."""

    node: NodeName
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        view: EnsembleView | None = now.view
        return view is not None and now.broker_ids[self.node] in view.taking_part - {view.leader}

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"follows": str(self.node)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtUp:
    """This server takes part, and has applied what the leader had a moment before."""

    node: NodeName
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        view: EnsembleView | None = now.view
        return view is not None and now.broker_ids[self.node] in view.taking_part - view.lagging

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"caught_up": str(self.node)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LastZxid:
    """This server has applied the transactions up to this one."""

    node: NodeName
    zxid_min: int
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        view: EnsembleView | None = now.view
        server = now.broker_ids[self.node]
        return view is not None and server in view.servers and view.zxid(server) >= self.zxid_min

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"last_zxid": {str(self.node): zxid_text(self.zxid_min)}}


def _led(_word: str, operand: object, _stage: Stage) -> Condition:
    if not isinstance(operand, bool):
        raise SpecError((), f"expected true or false, found {operand!r}")
    return EnsembleLed(led=operand)


def _last_zxid(_word: str, operand: object, stage: Stage) -> Condition:
    if not isinstance(operand, dict) or len(operand) != 1:
        raise SpecError((), f"expected a server and a zxid, found {operand!r}")
    name, zxid = next(iter(operand.items()))
    return LastZxid(node=node_of(name, stage), zxid_min=_zxid(zxid))


def _zxid(value: object) -> int:
    try:
        found = int(value, 16) if isinstance(value, str) else value
    except ValueError:
        found = None
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise SpecError((), f"expected a zxid, e.g. 0x100000005, found {value!r}")
    return found


CONDITIONS: Final[Mapping[str, Parse]] = {
    "led": _led,
    "leader": lambda _word, operand, stage: Leads(node=node_of(operand, stage)),
    "follows": lambda _word, operand, stage: FollowsLeader(node=node_of(operand, stage)),
    "caught_up": lambda _word, operand, stage: CaughtUp(node=node_of(operand, stage)),
    "last_zxid": _last_zxid,
}
