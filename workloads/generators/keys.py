"""The next keys: every key equally often, in an order that only the seed knows."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray


class KeyCycle:
    """Goes through the keys again and again, each time in a new order.

    At any moment no key was chosen more than once more often than another, so that each is under
    load during every fault, also when the rate is low.
    """

    def __init__(self, keys: Sequence[int], rng: np.random.Generator) -> None:
        assert keys, "a client without a key"
        self._keys = np.asarray(keys, dtype=np.int32)
        self._rng = rng
        self._rest = self._keys[:0]

    def take(self, count: int) -> NDArray[np.int32]:
        """Return the next `count` keys."""
        missing = count - len(self._rest)
        if missing > 0:
            rounds = -(-missing // len(self._keys))
            orders = self._rng.permuted(np.tile(self._keys, (rounds, 1)), axis=1)
            self._rest = np.concatenate([self._rest, orders.ravel()])
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken


def by_key(keys: NDArray[np.int32]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each key that occurs, with its positions in ascending order."""
    order = np.argsort(keys, kind="stable")
    if len(keys):
        for positions in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
            yield int(keys[positions[0]]), positions
