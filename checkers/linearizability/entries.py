"""What the catalogue says of the checks of open histories."""

from typing import Final

from checkers.entry import Entry, Kind, Strength

__all__ = ["MODEL_ENTRIES", "NONLINEARIZABLE", "WHOLE_HISTORY"]

_NEEDS: Final = ("model_operations",)

WHOLE_HISTORY: Final = Entry(
    id="M0",
    name="whole-history",
    title="No operation of an open history is missing",
    kind=Kind.ASSUMPTION,
    rule="Over all keys, the least index is 0 and the greatest is one less than the number of "
    "operations, by the statistics of the files, every one of which could be read. (That a process "
    "has one operation open at a time is not needed, and not compared.)",
    meaning="Otherwise what nobody wrote may have been written by an operation that got lost.",
    case="an operation",
    source="history/schema.py, MODEL_OPERATIONS",
    strength=Strength.NEVER,
    needs=_NEEDS,
)

NONLINEARIZABLE: Final = Entry(
    id="M1",
    name="nonlinearizable",
    title="No order of the operations explains every answer",
    kind=Kind.ANOMALY,
    rule="The operations of a key, each at one moment between its call and its return, ends "
    "included, are compared with what the object of the model does when nobody disturbs it "
    "(history/models.py). Crashed operations took effect at any moment after their call, or never. "
    "Versioned registers and logs: by the moments at which versions appear, each made once, by "
    "somebody, with one value; version 0 has none. Others: by a kernel of their own or a search "
    "with a budget of time and memory a key; a key that exceeds it is unknown.",
    meaning="Clients saw what one object, used by one of them at a time, would never have shown.",
    case="an answer that can be wrong: of a read, of a `cas` that was made or refused, or the "
    "version or offset of a change",
    source="Herlihy, Wing 1990; Wing, Gong 1993; Gibbons, Korach 1997; Lowe 2017",
    strength=Strength.NEVER,
    rests_on=(WHOLE_HISTORY.name,),
    needs=_NEEDS,
)

MODEL_ENTRIES: Final = (WHOLE_HISTORY, NONLINEARIZABLE)
"""In the order of the catalogue."""
