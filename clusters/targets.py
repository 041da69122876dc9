"""Nodes described by what they are to their system at a moment: its leader, a replica of a key.

Each system states its own (`System.targets`). Plays and mixes name them by their words.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fencepost.clusters.port import NodeName
from fencepost.history.failure import HarnessError


class NotNowError(HarnessError):
    """A step cannot be done at this moment, but could be at another."""


class VacantError(NotNowError):
    """No node fits a description now, as while a leader is elected."""


class SystemState(Protocol):
    """The state of a system against which a description is resolved."""

    @property
    def broker_ids(self) -> Mapping[NodeName, int]:
        """The ids, in views, of the nodes that serve clients."""

    @property
    def view(self) -> Any:
        """The system's own `SystemView`; None: no node showed anything."""

    @property
    def active_controller(self) -> NodeName | None:
        """The node that leads the others; None if none does."""

    @property
    def down(self) -> frozenset[NodeName]:
        """The nodes without a process by now; the view may show them yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTarget:
    """A description that one node at a time fits, or one of several."""

    words: str
    """The words of a play, without the key: "leader of", "active controller"."""
    find: Callable[[SystemState, str, random.Random], NodeName]
    """Returns the node that fits now, drawn if several do; the key is "" without one.

    Raises VacantError if none does."""
    of_key: bool = False
    """True if a key follows the words. A mix leaves the last of them out, and draws the key."""

    @property
    def drawn_as(self) -> str:
        """The words of a mix."""
        return self.words.removesuffix(" of") if self.of_key else self.words
