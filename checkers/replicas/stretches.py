"""Records of one key as proofs, one per stretch of offsets: a thousand lost at once are one."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.metadata.partition_states import PartitionVersion
from fencepost.checkers.proof import Proof
from fencepost.checkers.ranges import range_rule, stretches
from fencepost.checkers.replicas.first_reads import FirstReads
from fencepost.checkers.replicas.min_isr import SETTING
from fencepost.checkers.replicas.sends import AcknowledgedSends

_GAP_MAX: Final = 1000
"""Gaps inside a stretch are markers, or records of others."""


def stretch_proofs(
    rule: str,
    records: AcknowledgedSends | FirstReads,
    *,
    from_ns: NDArray[np.int64],
    metadata_offset: int,
    decided: tuple[str, ...],
    **named: Any,
) -> Iterator[Proof]:
    """Yield one proof per stretch of offsets.

    `rule` may name the `count` and `range` of a stretch, `min` (the least of its `from_ns`), `max`
    (its latest return), and what is `named` for all. `decided`: the names that come from the record
    at `metadata_offset`.
    """
    for places in stretches(records.offset, gap_max=_GAP_MAX):
        mine = records.take(places)
        first, last = int(mine.offset[0]), int(mine.offset[-1])
        yield Proof.of(
            rule,
            operations={
                "first_operation": int(mine.operation[0]),
                "operation": int(mine.operation[-1]),
            },
            offsets={"first": first, "last": last},
            metadata_offsets={"metadata_offset": metadata_offset},
            values={"first_value": int(mine.value[0]), "value": int(mine.value[-1])},
            times={"min": int(np.min(from_ns[places])), "max": int(np.max(mine.return_ns))},
            sources={"first": "first_operation", "first_value": "first_operation"}
            | {"last": "operation", "value": "operation"}
            | dict.fromkeys(decided, "metadata_offset"),
            count=len(places),
            range=Proof.of(range_rule(first, last)),
            **named,
        )


def below_min_isr_proofs(
    happened: str,
    records: AcknowledgedSends | FirstReads,
    *,
    from_ns: NDArray[np.int64],
    version: PartitionVersion,
    wanted: int,
) -> Iterator[Proof]:
    """Yield one proof per stretch of what happened to records under a version's small ISR."""
    return stretch_proofs(
        f"{{count}} records at {{range}} were {happened} between {{min}} and {{max}}, all of it "
        "under metadata offset {metadata_offset}: leader {leader} with ISR {isr} of replicas "
        "{replicas}, and {setting} is {wanted}",
        records,
        from_ns=from_ns,
        metadata_offset=version.metadata_offset,
        decided=("leader", "isr", "replicas"),
        leader=version.leader,
        isr=version.isr_text,
        replicas=list(version.replicas),
        setting=SETTING,
        wanted=wanted,
    )
