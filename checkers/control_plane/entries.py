"""The control plane's part of the catalogue."""

from typing import Final

from checkers.entry import Entry, Kind, Strength

__all__ = ["CONTROL_PLANE_ENTRIES"]

_LOG: Final = ("metadata_log",)
_LOG_AND_WIRE: Final = ("metadata_log", "wire")

CONTROL_PLANE_ENTRIES: Final = (
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
