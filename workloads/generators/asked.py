"""The broker that a client asks next, where it asks one after the other.

Most brokers pass on to the controller what only it decides. Those of the ZooKeeper generation do
not: they answer NOT_CONTROLLER, and clients ask the controller themselves, which the metadata
names. So a kind of request that was refused like that is asked of the controller from then on. Each
such refusal, also one by a controller that has been deposed, is a reason to look anew who it is. A
controller that does not answer is forgotten: whoever is asked next knows another one, or none.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

_NOT_CONTROLLER: Final = "NOT_CONTROLLER"
_SILENT: Final = frozenset({"NETWORK_EXCEPTION", "REQUEST_TIMED_OUT"})
B = TypeVar("B")


class Asked(Generic[B]):
    """The order of the brokers. `turn` returns the broker whose turn it is."""

    def __init__(self, turn: Callable[[], B]) -> None:
        self._turn = turn
        self._of_controller: set[str] = set()
        """The kinds of request that brokers do not pass on."""
        self._controller: B | None = None
        self.needs_look = False
        """Someone has to be asked who the controller is (`named`)."""

    def next(self, kind: str) -> B:
        """Return the broker to send a request of this kind to."""
        if self._controller is not None and kind in self._of_controller:
            return self._controller
        return self._turn()

    def answered(self, kind: str, broker: B, error: str | None) -> None:
        """Take the error with which a broker answered, or that stands for its silence."""
        if error == _NOT_CONTROLLER:
            self._of_controller.add(kind)
            self._controller = None
            self.needs_look = True
        elif error in _SILENT and broker == self._controller:
            self._controller = None

    def named(self, controller: B | None) -> None:
        """Take the controller that a broker named; None: it knew none, or did not answer."""
        self._controller = controller
        self.needs_look = False
