"""What the catalogue says of the lag of consumers."""

from typing import Final

from checkers.entry import Entry, Kind, Strength

__all__ = ["REAL_TIME_LAG"]

REAL_TIME_LAG: Final = Entry(
    id="D15",
    name="real-time-lag",
    title="How long after a record was known a consumer still had not got it",
    kind=Kind.ANOMALY,
    rule="For each ok poll of a key but the first of its session: how long, when it was called, "
    "its first record or a later one had been known, by an acknowledgement or by an ok read of "
    "anybody; no poll of the process that had ended by then had returned it. Quantiles over the "
    "polls of all keys, and of the keys with the greatest lag.",
    meaning="How stale consumers are: behind by themselves, or kept waiting by the cluster.",
    case="a poll whose lag is known",
    source="Jepsen, workload `kafka`, `realtime-lag`",
    strength=Strength.FIGURE,
    needs=("operations", "records"),
)
