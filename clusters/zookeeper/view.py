"""An ensemble's account of itself, and what follows from it: who leads, who follows, who lags.

A zxid is 64 bits: the epoch of the leader that proposed the transaction, and a counter from 1 on
within it. A new leader shows (epoch, 0) before the first transaction of its epoch, which no
follower ever shows: it is no transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

LEADER: Final = "leader"
FOLLOWER: Final = "follower"
_COUNTER_BITS: Final = 32
_COUNTER: Final = (1 << _COUNTER_BITS) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """A server's own word of its state. One that takes part in no quorum serves no clients."""

    mode: str | None
    """LEADER, FOLLOWER, …; None: it does not serve, e.g. since it looks for a leader."""
    zxid: int | None
    """The last transaction that it has applied; None: it does not serve."""


def zxid_text(zxid: int) -> str:
    """Return a zxid as ZooKeeper writes it: 0x100000005."""
    return f"{zxid:#x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleView:
    """`clusters.port.SystemView` of an ensemble. Servers are named by their `myid`."""

    servers: Mapping[int, ServerState]
    """Those that answered."""
    earlier: int = 0
    """The last zxid of the leader at the look before: a follower that is caught up has it."""
    names_of_ids: Mapping[str, str] = field(default_factory=dict)
    """Nothing: frames are not read."""

    @property
    def leader(self) -> int | None:
        """The server that leads. Of several that say so, the one of the latest epoch."""
        leaders = self._leaders()
        return max(leaders, key=lambda one: (self.zxid(one), one)) if leaders else None

    @property
    def taking_part(self) -> frozenset[int]:
        """The leader and its followers; empty without a leader."""
        leader = self.leader
        if leader is None:
            return frozenset()
        following = (one for one, state in self.servers.items() if state.mode == FOLLOWER)
        return frozenset((leader, *following))

    @property
    def lagging(self) -> frozenset[int]:
        """The followers that have not applied what the leader had at the look before."""
        return frozenset(one for one in self.taking_part if self.zxid(one) < self.earlier)

    @property
    def left_out(self) -> Sequence[str]:
        """Nothing: a server that serves follows the leader, or is one."""
        return ()

    @property
    def incomplete(self) -> Sequence[str]:
        """Say if there is not one leader, and who lags."""
        leaders = self._leaders()
        found = [] if leaders else ["no server leads"]
        if len(leaders) > 1:
            found.append(f"servers {sorted(leaders)} say that they lead")
        found += [
            f"server {one} has applied {zxid_text(self.zxid(one))} of {zxid_text(self.earlier)}"
            for one in sorted(self.lagging)
        ]
        return found

    def is_whole(self, members: frozenset[int]) -> bool:
        """Return whether one of the members leads, and all others follow and have caught up."""
        return self.taking_part >= members and not self.incomplete

    def zxid(self, server: int) -> int:
        """Return what a server that answered has applied; -1: it does not serve."""
        shown = self.servers[server].zxid
        return -1 if shown is None else shown

    @property
    def applied(self) -> int:
        """Return the leader's last transaction, 0 if no follower could have it."""
        leader = self.leader
        zxid = 0 if leader is None else self.zxid(leader)
        return zxid if zxid & _COUNTER else 0

    def _leaders(self) -> list[int]:
        return [one for one, state in self.servers.items() if state.mode == LEADER]


def first_view(servers: Sequence[int], _topics: Sequence[object]) -> EnsembleView:
    """Return what a new ensemble shows: the server of the highest number is elected."""
    epoch = 1 << _COUNTER_BITS
    modes = {one: LEADER if one == max(servers) else FOLLOWER for one in servers}
    return EnsembleView(
        servers={one: ServerState(mode=mode, zxid=epoch) for one, mode in modes.items()}
    )
