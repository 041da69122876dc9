"""The control plane's part of the catalogue."""

from typing import Final

from checkers.entry import Entry, Kind, Strength

__all__ = ["CONTROL_PLANE_ENTRIES"]

_LOG: Final = ("metadata_log",)
_LOG_AND_WIRE: Final = ("metadata_log", "wire")

CONTROL_PLANE_ENTRIES: Final = (
    Entry(
        id="C1",
        name="nonlinearizable-isr",
        title="Changes of the ISR have no order that explains them",
        kind=Kind.ANOMALY,
        rule="The leader and ISR of a partition are a register whose versions are its partition "
        "epochs in the metadata log. An AlterPartition is a compare-and-set (call: its request at "
        "the proxy; return: its answer passed on), changes of the controller's own are writes "
        "without a caller, not before their records' timestamps, and a describe shows a version "
        "that was there when it returned. There are moments at which the versions appeared that "
        "all of it agrees with; every change that was acknowledged stands in the log as it was "
        "acknowledged; no version was made twice; and every describe shows some version.",
        meaning="A leader and its controller do not agree about who is in sync, so records count "
        "as committed that are not.",
        source="Herlihy and Wing 1990; KIP-497, KIP-903",
        strength=Strength.NEVER,
        needs=_LOG_AND_WIRE,
    ),
    Entry(
        id="C2",
        name="stale-epoch-join",
        title="A replica joined the ISR on the word of an earlier incarnation",
        kind=Kind.ANOMALY,
        rule="A replica joins the ISR at metadata offset m by an AlterPartition. The broker epoch "
        "that the request names for it (version 3), if it names one, is not the one that it "
        "registered with last before m; or, if it names none, the registration in force at m was "
        "answered only after the request had been sent. A join whose request is not on the tape is "
        "unknown.",
        meaning="A broker that came back without its data counts as in sync. When it is elected, "
        "acknowledged records are gone, and the other replicas truncate theirs.",
        source="KIP-903; KAFKA-14139, KAFKA-14617",
        strength=Strength.NEVER,
        needs=_LOG_AND_WIRE,
    ),
)
"""In the order of their ids."""
