"""The states of one znode in the order in which they must have appeared, and what made each.

Absent; then the versions of the first life, in their order; absent again; the versions of the
second life; and so on. Lives come in the order of their numbers (a czxid grows with every change of
the tree), so every answer with a Stat names its place in this chain. The chain has the states that
answers name and those that these imply: version 3 of a life implies its versions 0 to 2, a later
life the end of the one before. Last comes the absence after the last life, whether or not it came.

The chain lacks what no answer shows: further versions of a life, and whole lives, that crashed
operations may have made in between. `schedule` says where that matters.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from fencepost.checkers.proof import Proof
from fencepost.checkers.znodes.operations import ZnodeOperation


@dataclass(frozen=True, slots=True, kw_only=True)
class Discrepancy:
    """Operations that contradict each other, and how."""

    why: Proof
    """The clause of how, before those of the operations."""
    operations: tuple[ZnodeOperation, ...]


class Chain:
    """The states of a znode, numbered from 0, which is the absence in the beginning."""

    def __init__(self, operations: Sequence[ZnodeOperation]) -> None:
        self.broken: list[Discrepancy] = []
        """The answers that contradict what an operation does, whatever the times."""
        self.makers: dict[int, list[ZnodeOperation]] = defaultdict(list)
        """The ok changes that made a state, by state."""
        self.values: dict[int, dict[int | None, ZnodeOperation]] = defaultdict(dict)
        """The values that a state was told to have, by state, each with one operation that did."""
        told = self._possible(operations)
        top: dict[int, int] = {}
        for one in told:
            top[_life(one)] = max(top.get(_life(one), 0), _version(one))
        self.lives = sorted(top)
        self.top = [top[life] for life in self.lives]
        """The highest version known, by place of the life."""
        self.first: list[int] = []
        """The state with version 0, by place of the life."""
        self.count = 1
        """The number of states."""
        for height in self.top:
            self.first.append(self.count)
            self.count += height + 2
        self._places = {life: place for place, life in enumerate(self.lives)}
        self.told = told
        """The ok operations with a Stat that the chain has a place for."""
        for one in told:
            self._fill(one)
        self._refuse_doubles()

    def gone(self, place: int) -> int:
        """Return the state of absence that follows a life."""
        return self.first[place] + self.top[place] + 1

    def state_of(self, one: ZnodeOperation) -> int:
        """Return the state that an ok change made, or that an ok read with a Stat found."""
        place = self._places[_life(one)]
        return self.gone(place) if one.f == "delete" else self.first[place] + _version(one)

    def place_of(self, state: int) -> tuple[int, int | None]:
        """Return the place of the life and the version of a state.

        Of an absence: the life that it follows, -1 in the beginning, and no version.
        """
        place = bisect_right(self.first, state) - 1
        if place < 0 or state == self.gone(place):
            return place, None
        return place, state - self.first[place]

    def clause(self, state: int) -> Proof:
        """Return the clause of a state."""
        place, version = self.place_of(state)
        if place < 0:
            return Proof.of("no znode")
        life = {"state_life": self.lives[place]}
        if version is None:
            return Proof.of("the end of life {state_life}", zookeeper_ids=life)
        return Proof.of(
            "version {state_version} of life {state_life}",
            zookeeper_ids=life,
            state_version=version,
        )

    def _possible(self, operations: Sequence[ZnodeOperation]) -> list[ZnodeOperation]:
        """Return the ok operations with a Stat.

        A version takes a change to make it: a number out of all proportion costs no memory.
        """
        changes_count = sum(not one.is_read for one in operations)
        told = []
        for one in operations:
            if one.is_ok and one.life is not None:
                if 0 <= _version(one) <= changes_count:
                    told.append(one)
                else:
                    most = "there were {changes_count} changes at most"
                    self._note(Proof.of(most, changes_count=changes_count), one)
        return told

    def _fill(self, one: ZnodeOperation) -> None:
        state, version = self.state_of(one), _version(one)
        if one.is_read:
            self.values[state].setdefault(one.value, one)
            return
        self.makers[state].append(one)
        if one.f == "delete":
            if one.expected not in (None, version):
                self._note(Proof.of("a delete ends the version that it expects"), one)
            if version < self.top[self._places[_life(one)]]:
                later = next(
                    other
                    for other in self.told
                    if other.life == one.life and _version(other) > version
                )
                last = Proof.of("a life has no version after the one with which it ended")
                self._note(last, one, later)
            return
        self.values[state].setdefault(one.value, one)
        if (one.f == "create") != (version == 0):
            self._note(Proof.of("a create makes version 0 of a life, and nothing else does"), one)
        if one.f == "cas" and one.expected != version - 1:
            self._note(Proof.of("a cas makes the version after the one that it expects"), one)

    def _refuse_doubles(self) -> None:
        for state, makers in self.makers.items():
            if len(makers) > 1:
                self._note(self.clause(state).further(" was made once"), *makers[:2])
        for state, values in self.values.items():
            if len(values) > 1:
                twice = list(values.values())[:2]
                self._note(self.clause(state).further(" has one value"), *twice)
        shown: dict[int | None, ZnodeOperation] = {}
        for values in self.values.values():
            for value, one in values.items():
                if value in shown:
                    once = Proof.of(
                        f"{None if value is None else '{written}'} was written once",
                        values={"written": value},
                    )
                    self._note(once, shown[value], one)
                shown[value] = one

    def _note(self, why: Proof, *operations: ZnodeOperation) -> None:
        self.broken.append(Discrepancy(why=why, operations=operations))


def _life(one: ZnodeOperation) -> int:
    assert one.life is not None
    return one.life


def _version(one: ZnodeOperation) -> int:
    assert one.version is not None
    return one.version
