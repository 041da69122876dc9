"""The rate of an event, and its uncertainty after a few runs: Wilson's score interval.

With no hit in n runs the rate is not 0 but at most the interval's upper end, and that is what is
printed. Wilson's interval keeps its promise at few runs and at rates near 0 and 1, where the normal
one shrinks to nothing (Brown, Cai, DasGupta: Interval Estimation for a Binomial Proportion, 2001).
"""

from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The rate of `hit_count` hits in `run_count` conclusive runs."""

    hit_count: int
    run_count: int

    def interval(self) -> tuple[float, float]:
        """Return Wilson's interval at `CONFIDENCE`; of no run at all, anything is possible."""
        if not self.run_count:
            return 0.0, 1.0
        # Half a second to import, which no other command should pay.
        from scipy.stats import binomtest  # noqa: PLC0415

        found = binomtest(self.hit_count, self.run_count).proportion_ci(
            confidence_level=CONFIDENCE, method="wilson"
        )
        # A rate that was seen is never outside, however the last bits were rounded.
        seen = self.hit_count / self.run_count
        return min(float(found.low), seen), max(float(found.high), seen)

    def text(self) -> str:
        """Return `20/20`, `0/20 (at most 16 % at 95 % confidence)` or `13/20 (43 to 82 % at …)`."""
        low, high = (f"{100 * end:.0f}" for end in self.interval())
        fraction = f"{self.hit_count}/{self.run_count}"
        if not self.run_count or self.hit_count == self.run_count:
            return fraction
        bound = f"at most {high} %" if not self.hit_count else f"{low} to {high} %"
        return f"{fraction} ({bound} at {100 * CONFIDENCE:.0f} % confidence)"
