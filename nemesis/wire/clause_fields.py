"""The fields that a clause of a rule may ask for: columns of the tape, and three others."""

from typing import Final

from fencepost.history.cluster_schema import WIRE

CLAUSE_FIELDS: Final = frozenset((*WIRE.names[WIRE.names.index("size_bytes") :], "key")) | {
    "metadata",
    "record_type",
}
