"""The proofs of what is wrong with the operations of a set."""

from dataclasses import dataclass

import numpy as np

from checkers.linearizability.operations import Columns, Operation, operations_of
from checkers.linearizability.set_rows import MODEL, Elements, Reads, Things
from checkers.linearizability.words import cited
from checkers.proof import Proof

__all__ = ["Story", "of_apart", "of_strange"]


def of_strange(columns: Columns, place: int, value: int) -> Proof:
    """Return the proof that the read at this place returned a value that was never added."""
    (read,) = _operations(columns, place)
    return Proof.of(
        "{cited} returned {value}, which no operation can have added",
        operations={"index": read.index},
        values={"value": value},
        cited=cited(read, MODEL),
    )


def of_apart(columns: Columns, elements: Elements, reads: Reads, number: int) -> Proof:
    """Return the proof: this read, and one as small or smaller, neither containing the other."""
    mine = reads.elements(number)
    earlier = np.flatnonzero(elements.size <= reads.size[number])
    lacking = int(np.setdiff1d(earlier, mine)[0])
    other = int(elements.read_by[lacking])
    only_mine = int(np.setdiff1d(mine, reads.elements(other))[0])
    here, there = int(elements.value[only_mine]), int(elements.value[lacking])
    one, two = _operations(columns, int(reads.place[number]), int(reads.place[other]))
    return Proof.of(
        "{cited} found {here} without {there}, and {other} {there} without {here}: "
        "in a set that only grows, one of two reads contains the other",
        operations=tuple(sorted((one.index, two.index))),
        values={"here": here, "there": there},
        cited=cited(one, MODEL),
        other=cited(two, MODEL),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Tells why one thing was over too early."""

    columns: Columns
    elements: Elements
    reads: Reads
    things: Things

    def of(self, *, early: int, awaited: int) -> Proof:
        """Return the proof: `early` was over before `awaited`, which must precede it, began."""
        lost, needed = self.things.element[early], self.things.element[awaited]
        read, earlier_read = self.things.read[early], self.things.read[awaited]
        if lost < 0 and needed < 0:
            return self._went_back(int(read), int(earlier_read))
        if lost < 0:
            return self._found_early(int(read), int(needed))
        if needed < 0:
            return self._lost(int(lost), int(earlier_read))
        return self._overtaken(int(lost), int(needed))

    def _went_back(self, large: int, small: int) -> Proof:
        elements = self.reads.elements(large)
        more = elements[self.elements.size[elements] > self.reads.size[small]]
        value = int(self.elements.value[more[0]])
        first, second = self._reads(large, small)
        return _proof(
            (first, second),
            (value,),
            f"{cited(first, MODEL)} returned at {first.end} ns with {value}, and "
            f"{cited(second, MODEL)} was called at {second.call} ns and is without it",
        )

    def _found_early(self, number: int, element: int) -> Proof:
        value = int(self.elements.value[element])
        (read,) = self._reads(number)
        (add,) = _operations(self.columns, int(self.elements.called_by[element]))
        return _proof(
            (read, add),
            (value,),
            f"{cited(read, MODEL)} returned at {read.end} ns with {value}, whose first add, "
            f"operation {add.index}, was called at {add.call} ns",
        )

    def _lost(self, element: int, number: int) -> Proof:
        value = int(self.elements.value[element])
        (read,) = self._reads(number)
        (add,) = _operations(self.columns, int(self.elements.ended_by[element]))
        return _proof(
            (add, read),
            (value,),
            f"{cited(add, MODEL)} returned at {add.end} ns, and {cited(read, MODEL)} was called at "
            f"{read.call} ns and is without {value}",
        )

    def _overtaken(self, element: int, later: int) -> Proof:
        value, later_value = (int(self.elements.value[one]) for one in (element, later))
        (read,) = self._reads(int(self.elements.read_by[later]))
        add, later_add = _operations(
            self.columns,
            int(self.elements.ended_by[element]),
            int(self.elements.called_by[later]),
        )
        return _proof(
            (add, later_add, read),
            (value, later_value),
            f"{cited(add, MODEL)} returned at {add.end} ns, before the first add of {later_value}, "
            f"operation {later_add.index}, was called at {later_add.call} ns; "
            f"{cited(read, MODEL)} found {later_value} without {value}",
        )

    def _reads(self, *numbers: int) -> list[Operation]:
        return _operations(self.columns, *(int(self.reads.place[number]) for number in numbers))


def _proof(operations: tuple[Operation, ...], values: tuple[int, ...], detail: str) -> Proof:
    indices = tuple(sorted({one.index for one in operations}))
    return Proof.of("{detail}", operations=indices, values=values, detail=detail)


def _operations(columns: Columns, *places: int) -> list[Operation]:
    return operations_of(columns.take(np.array(places, dtype=np.int64)), MODEL)
