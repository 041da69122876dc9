"""The kernel of one znode: what was acknowledged is there, or was followed by something.

Compared are the ok changes of a znode with its final reads: each server, once the ensemble is whole
again, is read behind a sync. A change that had returned before a final read was called is lost if
what that read found cannot come after it:

- a version of a life, if the read found an earlier version, the same version with another value, or
  an earlier life; or no znode, or a later life, although no delete can have ended the life: none of
  it was acknowledged, and none on this znode crashed;
- the end of a life, if the read found that life or an earlier one.

`nonlinearizable-write` finds the contradiction, too, and more. This says which writes are gone.

Source: ZooKeeper Programmer's Guide, Consistency Guarantees, Reliability: "Once an update has been
applied, it will persist from that time forward until a client overwrites the update."
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.proof import Proof
from fencepost.checkers.znodes.operations import ZnodeOperation, cited, told
from fencepost.history.operation import Outcome

NAME: Final = "lost-acknowledged-write"


def lost_writes(key: str, operations: Sequence[ZnodeOperation]) -> Found:
    """Find the acknowledged writes on one znode that its final reads do not show."""
    finals = [one for one in operations if one.f == "final-read" and one.is_ok]
    changes = [one for one in operations if one.is_ok and not one.is_read]
    ended = {one.life for one in changes if one.f == "delete"}
    crashed = any(one.f == "delete" and one.outcome == Outcome.INFO for one in operations)
    last_call = max((one.call for one in finals), default=0)
    judged = [one for one in changes if one.end < last_call]

    def proving(change: ZnodeOperation) -> ZnodeOperation | None:
        may_end = crashed or change.life in ended
        return next(
            (
                one
                for one in finals
                if one.call > change.end and _lacks(one, change, may_end=may_end)
            ),
            None,
        )

    lost = [(one, final) for one in judged if (final := proving(one)) is not None]
    return found(
        NAME,
        key,
        cases=len(judged),
        never=np.arange(len(lost), dtype=np.int64),
        proof=lambda number: _proof(*lost[number]),
    )


def _lacks(final: ZnodeOperation, change: ZnodeOperation, *, may_end: bool) -> bool:
    """Return whether what a final read found cannot come after a change. `may_end`: its life."""
    assert change.life is not None
    assert change.version is not None
    if final.life is None:
        return change.f != "delete" and not may_end
    assert final.version is not None
    if change.f == "delete":
        return final.life <= change.life
    if final.life != change.life:
        return final.life < change.life or not may_end
    same = final.version == change.version
    return final.version < change.version or (same and final.value != change.value)


def _proof(change: ZnodeOperation, final: ZnodeOperation) -> Proof:
    return Proof.of(
        "acknowledged, and gone: {change}; afterwards {final}, on server {server}",
        operations=cited((change, final)),
        change=told(change),
        final=told(final),
        server=final.server,
    )
