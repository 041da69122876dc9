"""The clock of a host: how it differs from the world's time."""

from typing import Final

_MILLION: Final = 1_000_000


class HostClock:
    """Reads `now + offset`, and gains `drift_ppm` millionths; it never goes back.

    Slotted and mutable: the loop of the world adds `offset_ns` itself where there is no drift.
    """

    __slots__ = ("drift_ppm", "offset_ns")

    def __init__(self, *, offset_ns: int = 0, drift_ppm: int = 0) -> None:
        assert drift_ppm > -_MILLION, "a clock does not go back"
        self.offset_ns = offset_ns
        self.drift_ppm = drift_ppm

    def read(self, now_ns: int) -> int:
        """Return the time that it shows at this time of the world."""
        return now_ns + self.offset_ns + now_ns * self.drift_ppm // _MILLION

    def lasts(self, shown_ns: int) -> int:
        """Return the world's time until it shows `shown_ns` more, or a little less."""
        if not self.drift_ppm:
            return shown_ns
        return shown_ns * _MILLION // (_MILLION + self.drift_ppm) - 1

    def run(self, *, drift_ppm: int, now_ns: int) -> None:
        """Let it gain `drift_ppm` from now on; it goes on from what it shows."""
        shown_ns = self.read(now_ns)
        self.drift_ppm = drift_ppm
        self.offset_ns += shown_ns - self.read(now_ns)

    def jump(self, by_ns: int) -> None:
        """Let it show more than it did: nodes use monotonic clocks, so never less."""
        assert by_ns >= 0, by_ns
        self.offset_ns += by_ns
