"""The functions (`f`) of the operations that a page counts and plots: on records, or on znodes."""

from dataclasses import dataclass
from typing import Final

from fencepost.checkers.znodes.operations import CHANGES, READS
from fencepost.history.manifest import Manifest
from fencepost.history.models import Model
from fencepost.history.operation import F


@dataclass(frozen=True, slots=True, kw_only=True)
class Functions:
    """The functions of one table of operations, and the words for those that clients rest on.

    Final reads are no reads here: they begin when everything is healed.
    """

    names: tuple[str, ...]
    """All of them, in the order in which they are listed."""
    columns: tuple[str, ...]
    """The columns of the table that are counted."""
    writes: frozenset[str]
    reads: frozenset[str]
    timed: tuple[frozenset[str], ...]
    """Those whose latencies are plotted, each set apart."""
    have_refusals: bool
    """True if a failure without an error is a refusal, which is an answer."""
    of_fault: tuple[str, str]
    """The words for the writes and reads that are grounds, of one fault."""
    of_kind: tuple[str, str]
    """The words for those that a verdict counts, of a kind of fault."""


_COLUMNS: Final = ("f", "outcome", "call_ns", "return_ns", "error")
_SENDS: Final = frozenset((F.SEND.value,))
_ZNODE_READS: Final = READS - {"final-read"}

OF_RECORDS: Final = Functions(
    names=tuple(f.value for f in F),
    columns=(*_COLUMNS, "record_count"),
    writes=_SENDS,
    reads=frozenset((F.POLL.value,)),
    timed=(_SENDS,),
    have_refusals=False,
    of_fault=("sends ok", "polls with records"),
    of_kind=("acknowledged sends", "polls with records"),
)
"""Of a run on Kafka's partitions."""
OF_ZNODES: Final = Functions(
    names=("create", "set", "cas", "delete", "read", "sync-read", "final-read"),
    columns=_COLUMNS,
    writes=CHANGES,
    reads=_ZNODE_READS,
    timed=(CHANGES, _ZNODE_READS),
    have_refusals=True,
    of_fault=("writes answered", "reads answered"),
    of_kind=("acknowledged writes", "sync reads ok"),
)
"""Of a run on znodes."""


def functions_of(manifest: Manifest | None) -> Functions:
    """Return the functions of a run; of one without a manifest, those of records."""
    return OF_ZNODES if manifest is not None and manifest.model == Model.ZNODE else OF_RECORDS
