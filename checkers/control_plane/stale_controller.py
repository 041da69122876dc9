"""C14 stale-controller: A controller out of office goes on as if it were in.

A controller called itself the leader of the quorum in an epoch, 10 s or more after another one had
done so in a later epoch, and after it was last silent for 5 s, as one that is paused is; or in an
earlier epoch than one that it had called itself the leader of before, and no fault had changed its
disk.

A leader of the quorum that is cut off from the other voters cannot know that they have elected
another. It commits nothing any more, so nothing is lost; but brokers that still reach it get
metadata that stands still, for as long as the cut lasts. Since Kafka 3.7 it resigns on its own
within a few seconds (one and a half times its fetch time-out, 2 s by default). A shorter overlap is
normal.

A controller that was stopped for a minute (a paused process) wakes up in office, and answers what
had been asked in the meantime before it looks at the clock. So after a silence of `SILENCE_NS` it
is given the same time anew.

Nor does a controller claim an office of an earlier epoch than one that it has claimed itself: what
epoch it is in is on its disk (KIP-595, `quorum-state`). All controllers are asked in turn, so their
answers are in order. One whose disk a fault has changed by then may have forgotten.

A case is a change of office that claims were recorded for another `GRACE_NS` after: all controllers
are asked all the time, so a deposed one that is not heard of any more was judged, too. An office
that never changed hands proves nothing.

Meaning: Brokers that still reach it are shown metadata that stands still, for as long as it is cut
off.
Case: a change of office that claims were recorded for 10 s after
Source: KAFKA-15489; KIP-595
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from fencepost.checkers.disk_faults import first_disk_faults_ns
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.view import METADATA, MetadataView, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.QUORUM,
    needs=("quorum_claims",),
)
NAME: Final = ENTRY.name
GRACE_NS: Final = 10_000_000_000
SILENCE_NS: Final = 5_000_000_000
"""Longer than a controller that lives is ever not heard of: it is asked every second or three."""


def stale_controllers(tables: Tables, seen: MetadataView) -> Judged:
    """Judge the last such claim of each controller and epoch. Reads `quorum_claims`, `faults`."""
    claims = sorted(tables["quorum_claims"].to_pylist(), key=lambda row: row["time_ns"])
    several = len(seen.facts.controllers) > 1
    doubt = "no controller was seen to claim to lead the quorum" if several and not claims else ""
    proofs = list(_stale(claims, tables["faults"]))
    yield METADATA, spelled(NAME, METADATA, proofs, cases=_deposed_count(claims), doubt=doubt)


def _deposed_count(claims: Sequence[Mapping[str, Any]]) -> int:
    """Return how many claimed (controller epoch, node) pairs were superseded long enough ago."""
    end_ns = claims[-1]["time_ns"] if claims else 0
    offices = {(row["controller_epoch"], row["node"]) for row in claims}
    old = {
        (row["controller_epoch"], row["node"])
        for row in claims
        if row["time_ns"] + GRACE_NS <= end_ns
    }
    return sum(any(later > epoch and by != node for later, by in old) for epoch, node in offices)


def _stale(claims: Iterable[Mapping[str, Any]], faults: pa.Table) -> Iterable[Proof]:
    changed_ns = first_disk_faults_ns(faults)
    # Of each epoch, the time of its first claim, and who made it.
    first: dict[int, tuple[int, str]] = {}
    # Of each controller, since when it was heard of without a silence, and when last.
    heard: dict[str, tuple[int, int]] = {}
    # Of each controller, its last claim of its newest epoch.
    claimed: dict[str, tuple[int, int]] = {}
    stale: dict[tuple[str, int], Proof] = {}
    for row in claims:
        node, epoch, time_ns = row["node"], row["controller_epoch"], row["time_ns"]
        first.setdefault(epoch, (time_ns, node))
        newest_ns, newest = claimed.get(node, (time_ns, epoch))
        if epoch < newest and time_ns < changed_ns.get(node, OPEN_NS):
            stale[node, epoch] = Proof.of(
                "{node} called itself the leader of the quorum in epoch {epoch} at {claimed}, "
                "after it had done so itself in epoch {newer_epoch} at {replaced}",
                values={"epoch": epoch, "newer_epoch": newest},
                times={"claimed": time_ns, "replaced": newest_ns},
                node=node,
            )
            continue
        if epoch >= newest:
            claimed[node] = time_ns, epoch
        since_ns, last_ns = heard.get(node, (time_ns, time_ns))
        since_ns = since_ns if time_ns - last_ns <= SILENCE_NS else time_ns
        heard[node] = since_ns, time_ns
        newer = [(at_ns, by, one) for one, (at_ns, by) in first.items() if one > epoch]
        for at_ns, by, newer_epoch in sorted(newer)[:1]:
            if by != node and time_ns - max(at_ns, since_ns) >= GRACE_NS:
                stale[node, epoch] = Proof.of(
                    "{node} still called itself the leader of the quorum in epoch {epoch} at "
                    "{claimed}, {late} after {by} had done so in epoch {newer_epoch} ({replaced})",
                    values={"epoch": epoch, "newer_epoch": newer_epoch},
                    times={"claimed": time_ns, "replaced": at_ns},
                    durations={"late": time_ns - at_ns},
                    node=node,
                    by=by,
                )
    return stale.values()


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=stale_controllers,
        tables=("quorum_claims", "faults"),
    ),
)
