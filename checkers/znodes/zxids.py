"""The kernel of zxids: each names one change, and they rise in the order in which changes are made.

An answer with a zxid tells of a change: its own, or the one whose state it read. Over all znodes:

- *order*: an acknowledged change has a greater zxid than each that was told before it was asked for
  (by an answer that had returned before its call, in any session), or ahead of it (by an answer to
  what its own session had queued earlier);
- *uniqueness*: all answers with one zxid tell of one change: one end of a life, or one version of
  one life of one znode with one value; and one operation at most says that it made the change.

A change without an answer is held to nothing, but a read that shows it tells of its zxid. Changes
that overlap, of different sessions, may have their zxids in either order.

Zxids are an epoch and a counter. An epoch begins with an election, in which a majority gives its
word never to follow an earlier one: as long as the promises are on disk, no epoch comes twice. So
an ensemble that breaks this rule has lost what it had promised, and with it what it acknowledged.

Source: ZooKeeper Programmer's Guide, Time in ZooKeeper: "Each change will have a unique zxid and if
zxid1 is smaller than zxid2 then zxid1 happened before zxid2"; Consistency Guarantees, Sequential
Consistency: "Updates from a client will be applied in the order that they were sent"; Internals:
writes are linearizable.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from fencepost.checkers.anomaly import Found
from fencepost.checkers.proof import Proof
from fencepost.checkers.znodes.operations import ZnodeOperation, cited, found_by_znode, told

NAME: Final = "nonmonotonic-zxid"
_EPOCH_SHIFT: Final = 32

_Told = tuple[str, ZnodeOperation]
"""A znode, and an ok operation on it that tells of a zxid."""
_Wrong = tuple[_Told, _Told, str]
"""An answer, an earlier one, and why the zxids of both cannot be."""
_RETURNED: Final = "it had returned before this was called"
_QUEUED: Final = "the session had queued it earlier"
_ANOTHER: Final = "it is of another change"


def zxids_out_of_order(by_key: Mapping[str, Sequence[ZnodeOperation]]) -> list[tuple[str, Found]]:
    """Find the answers whose zxids cannot be, by znode. `by_key`: the operations on each."""
    told = _answers(by_key)
    wrong: dict[str, list[_Wrong]] = defaultdict(list)
    for one in _wrong(told):
        wrong[one[0][0]].append(one)
    cases: dict[str, int] = defaultdict(int)
    for key, _ in told:
        cases[key] += 1
    return found_by_znode(NAME, by_key, wrong, cases=cases, proof=_proof)


def zxid_of(one: ZnodeOperation) -> int:
    """Return the zxid that an operation tells of; it has one."""
    assert one.zxid is not None
    return one.zxid


def _answers(by_key: Mapping[str, Sequence[ZnodeOperation]]) -> list[_Told]:
    """Return the answers with a zxid, by index."""
    told = [
        (key, one)
        for key, operations in by_key.items()
        for one in operations
        if one.is_ok and one.zxid is not None
    ]
    return sorted(told, key=lambda member: member[1].index)


def _wrong(told: Sequence[_Told]) -> list[_Wrong]:
    """Return one contradiction of each answer that has any. `told`: by index."""
    returned, queued, first = _returned(told), _queued(told), _first(told)
    wrong: list[_Wrong] = []
    for member in told:
        one = member[1]
        greater = [
            (member, other, why)
            for before, why in ((returned, _RETURNED), (queued, _QUEUED))
            if (other := before.get(one.index)) is not None and zxid_of(other[1]) >= zxid_of(one)
        ]
        named = first[zxid_of(one)]
        if greater:
            wrong.append(greater[0])
        elif named is not member and (not one.is_read or _change(*named) != _change(*member)):
            wrong.append((member, named, _ANOTHER))
    return wrong


def _returned(told: Sequence[_Told]) -> dict[int, _Told]:
    """Return the answer with the greatest zxid that had returned before the call of each change."""
    by_end = sorted(told, key=lambda member: member[1].end)
    found_by: dict[int, _Told] = {}
    greatest: _Told | None = None
    place = 0
    for _, one in sorted(told, key=lambda member: member[1].call):
        while by_end[place][1].end < one.call:
            greatest = _greater(greatest, by_end[place])
            place += 1
        if greatest is not None and not one.is_read:
            found_by[one.index] = greatest
    return found_by


def _queued(told: Sequence[_Told]) -> dict[int, _Told]:
    """Return the answer with the greatest zxid that its session queued before each change."""
    found_by: dict[int, _Told] = {}
    greatest: dict[int, _Told] = {}
    for member in told:
        one = member[1]
        if one.session in greatest and not one.is_read:
            found_by[one.index] = greatest[one.session]
        greatest[one.session] = _greater(greatest.get(one.session), member)
    return found_by


def _greater(one: _Told | None, other: _Told) -> _Told:
    return other if one is None or zxid_of(other[1]) > zxid_of(one[1]) else one


def _first(told: Sequence[_Told]) -> dict[int, _Told]:
    """Return the answer that says which change a zxid names: its own, or else the first read."""
    first: dict[int, _Told] = {}
    for member in sorted(told, key=lambda member: (member[1].is_read, member[1].index)):
        first.setdefault(zxid_of(member[1]), member)
    return first


def _change(key: str, one: ZnodeOperation) -> tuple[object, ...]:
    return (key, one.life, one.version, one.f == "delete", one.value)


def _proof(wrong: _Wrong) -> Proof:
    (_, one), (key, other), why = wrong
    return Proof.of(
        "{answer} tells of zxid {zxid}, of epoch {epoch}; {earlier}, on {key}, told of zxid "
        f"{{earlier_zxid}}, of epoch {{earlier_epoch}}, and {why}",
        operations=cited((one, other)),
        answer=told(one, zxid="zxid"),
        epoch=zxid_of(one) >> _EPOCH_SHIFT,
        earlier=told(other, zxid="earlier_zxid"),
        key=key,
        earlier_epoch=zxid_of(other) >> _EPOCH_SHIFT,
    )
