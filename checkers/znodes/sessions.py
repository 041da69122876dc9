"""The kernel of sessions: what a session was shown never goes back, and its own writes are in it.

A session carries out its operations in the order in which they were queued, whichever server it is
connected to, and each is answered from a tree that has every change up to some zxid. So a session
that was told of the change z, by an answer with its zxid (its own write, or a read), is from then
on answered from trees that have z and every change before it, of *any* znode:

- a later read that found the state of change m of its znode is wrong if another change of that
  znode is known with a zxid after m and up to z, and was called before the read returned;
- a later read that found nothing is wrong if the session had been told of a life of that znode, and
  a write on that life was called after the read had returned, and was acknowledged.

Only known zxids are compared: a change that no answer told of proves nothing. Where zxids are no
order in which the changes can have been made (`zxids`), no session is judged by them.

Source: ZooKeeper Programmer's Guide, Consistency Guarantees, Single System Image: "a client will
never see an older view of the system even if the client fails over to a different server with the
same session"; Internals: reads "respect each client's operation order".
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from fencepost.checkers.anomaly import Found, none
from fencepost.checkers.proof import Proof
from fencepost.checkers.znodes.operations import ZnodeOperation, cited, found_by_znode, told
from fencepost.checkers.znodes.zxids import zxid_of

NAME: Final = "nonmonotonic-session"

_Wrong = tuple[ZnodeOperation, ...]


def sessions_that_went_back(
    by_key: Mapping[str, Sequence[ZnodeOperation]], *, doubt: str
) -> list[tuple[str, Found]]:
    """Find reads that show a session an older view, by znode. `by_key`: the operations on each.

    `doubt`: why zxids are no order of the changes; empty if they are one.
    """
    if doubt:
        return [(key, none(NAME, key, cases=0, doubt=doubt)) for key in sorted(by_key)[:1]]
    changes = {key: _Changes(operations) for key, operations in by_key.items()}
    sessions: dict[int, list[tuple[str, ZnodeOperation]]] = defaultdict(list)
    for key, operations in by_key.items():
        for one in operations:
            sessions[one.session].append((key, one))
    cases: dict[str, int] = defaultdict(int)
    wrong: dict[str, list[_Wrong]] = defaultdict(list)
    for members in sessions.values():
        seen: ZnodeOperation | None = None
        lives: dict[tuple[str, int], ZnodeOperation] = {}
        for key, one in sorted(members, key=lambda member: member[1].index):
            if not one.is_ok:
                continue
            if one.is_read and seen is not None:
                cases[key] += 1
                older = changes[key].older(one, seen=seen, lives=lives, key=key)
                if older:
                    wrong[key].append(older)
            if one.zxid is not None and (seen is None or one.zxid > zxid_of(seen)):
                seen = one
            if one.life is not None:
                lives[key, one.life] = one
    return found_by_znode(NAME, by_key, wrong, cases=cases, proof=_proof)


class _Changes:
    """The known changes of a znode."""

    def __init__(self, operations: Sequence[ZnodeOperation]) -> None:
        known: dict[int, ZnodeOperation] = {}
        self._last_write: dict[int, ZnodeOperation] = {}
        for one in operations:
            if not one.is_ok or one.zxid is None:
                continue
            known.setdefault(one.zxid, one)
            if not one.is_read and one.life is not None and one.f != "create":
                last = self._last_write.get(one.life)
                if last is None or one.call > last.call:
                    self._last_write[one.life] = one
        self._zxids = sorted(known)
        self._known = known

    def older(
        self,
        read: ZnodeOperation,
        *,
        seen: ZnodeOperation,
        lives: Mapping[tuple[str, int], ZnodeOperation],
        key: str,
    ) -> _Wrong:
        """Return the proof that a read is of an older view than `seen`; empty if it is not."""
        if read.zxid is None:
            for life, last in self._last_write.items():
                shown = lives.get((key, life))
                if shown is not None and last.call > read.end:
                    return (shown, read, last)
            return ()
        first = bisect_right(self._zxids, read.zxid)
        until = bisect_right(self._zxids, zxid_of(seen))
        between = (self._known[zxid] for zxid in self._zxids[first:until])
        # One that was called later has a zxid that was given twice: its writes fit no order.
        lacking = next((one for one in between if one.call <= read.end), None)
        return () if lacking is None else (seen, read, lacking)


def _proof(wrong: _Wrong) -> Proof:
    seen, read, change = wrong
    return Proof.of(
        "session {session} was told of a change by {seen}, zxid {zxid}; queued behind it, {read} "
        "is of an older view, which lacks {change}, zxid {other}",
        operations=cited((seen, read, change)),
        zookeeper_ids={"session": seen.session},
        seen=told(seen, zxid="zxid"),
        read=told(read),
        change=told(change, zxid="other"),
    )
