"""An event loop over one level-triggered epoll, with timers. What it calls must not block."""

import heapq
import itertools
import select
from collections.abc import Callable

from history.clock import Clock

__all__ = ["EventLoop"]


class EventLoop:
    """A loop that calls the handlers of ready descriptors and of times that have come."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def watch(self, descriptor: int, mask: int, handler: Callable[[int], None]) -> None:
        """Call `handler` when something of `mask`, or an error, is there."""
        self._handlers[descriptor] = handler
        self._epoll.register(descriptor, mask)

    def change(self, descriptor: int, mask: int) -> None:
        """Watch for something else."""
        self._epoll.modify(descriptor, mask)

    def forget(self, descriptor: int) -> None:
        """Watch no more."""
        del self._handlers[descriptor]
        self._epoll.unregister(descriptor)

    def wake(self, at_ns: int, handler: Callable[[], None]) -> None:
        """Call `handler` at this time."""
        heapq.heappush(self._timers, (at_ns, next(self._numbers), handler))

    def step(self, *, timeout_s: float | None = None) -> bool:
        """Wait until something is there, or for `timeout_s`, and call whom it concerns.

        False if nothing was there, and no time had come.
        """
        ready = [
            (descriptor, mask, self._handlers[descriptor])
            for descriptor, mask in self._epoll.poll(self._patience_s(timeout_s))
        ]
        for descriptor, mask, handler in ready:
            # What came before it may have closed it, or even given its number to another.
            if self._handlers.get(descriptor) is handler:
                handler(mask)
        happened = bool(ready)
        while self._timers and self._timers[0][0] <= self._clock.now_ns():
            happened = True
            heapq.heappop(self._timers)[2]()
        return happened

    def close(self) -> None:
        """Wait for nothing any more."""
        self._epoll.close()

    def _patience_s(self, timeout_s: float | None) -> float | None:
        if not self._timers:
            return timeout_s
        until_s = max(0.0, (self._timers[0][0] - self._clock.now_ns()) / 1e9)
        return until_s if timeout_s is None else min(until_s, timeout_s)
