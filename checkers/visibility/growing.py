"""Reads of what only grows within one topic id, through several brokers, that went back.

The same question as of topics (`newer.first_known_above`), with the number itself as the rank: no
write has to be known.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from checkers.metadata.shared_values import shared_values
from checkers.proof import Proof
from checkers.visibility.lacking import Lacking
from checkers.visibility.newer import NONE, first_known_above

__all__ = ["compared_count", "stretches", "went_back"]

_COLUMNS: Final = ("read", "process", "call_ns", "return_ns")


def went_back(
    key: str, reads: pa.Table, *, number: str, across: bool, clause: Callable[[int], Proof]
) -> Iterator[Lacking]:
    """Yield the reads that show a smaller number than one that returned before they were called.

    `reads`: what was shown of one thing: columns `read`, `process`, `node`, `call_ns`, `return_ns`
    and the `number`; `across`: compared with reads through other brokers, else through the same
    one; `clause`: what a number means.
    """
    numbers = reads[number].to_numpy().astype(np.int64)
    if numbers.min() == numbers.max():
        return
    columns = {name: reads[name].to_numpy().astype(np.int64) for name in _COLUMNS}
    nodes = np.array(shared_values(reads["node"].combine_chunks()), dtype=object)
    for node in np.unique(nodes):
        here = nodes == node
        mine, others = np.flatnonzero(here), np.flatnonzero(~here if across else here)
        claim = first_known_above(
            numbers[others],
            columns["return_ns"][others],
            asked=numbers[mine],
            before_ns=columns["call_ns"][mine],
        )
        lacks = claim != NONE
        if not lacks.any():
            continue  # and nothing of these reads is kept
        stale, newer = mine[lacks], others[claim[lacks]]
        yield Lacking(
            key=key,
            read=columns["read"][stale],
            process=columns["process"][stale],
            node=nodes[stale],
            call_ns=columns["call_ns"][stale],
            known_ns=columns["return_ns"][newer],
            clauses=_pair(numbers, columns, nodes, stale=stale, newer=newer, clause=clause),
        )


def compared_count(reads: pa.Table, *, across: bool) -> int:
    """Return how many of these reads of one thing were called after another one had returned."""
    nodes = reads["node"].combine_chunks().dictionary_encode().indices.to_numpy()
    call_ns, return_ns = reads["call_ns"].to_numpy(), reads["return_ns"].to_numpy()
    count = 0
    for node in np.unique(nodes):
        here = nodes == node
        known_ns = return_ns[~here if across else here]
        count += int(np.count_nonzero(call_ns[here] > known_ns.min())) if len(known_ns) else 0
    return count


def stretches(table: pa.Table, names: Sequence[str], *, then: str) -> Iterator[pa.Table]:
    """Yield the rows that are equal in these columns, together, each in the order of `then`."""
    table = table.sort_by([(name, "ascending") for name in (*names, then)])
    if not len(table):
        return
    codes = [table[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in names]
    new = np.any([np.diff(one, prepend=-1) != 0 for one in codes], axis=0)
    starts = np.flatnonzero(new)
    for start, end in zip(starts, np.append(starts[1:], len(table)), strict=True):
        yield table.slice(int(start), int(end - start))


def _pair(
    numbers: NDArray[np.int64],
    columns: dict[str, NDArray[np.int64]],
    nodes: NDArray[np.object_],
    *,
    stale: NDArray[np.int64],
    newer: NDArray[np.int64],
    clause: Callable[[int], Proof],
) -> Callable[[int], tuple[Proof, Proof]]:
    def told(place: int) -> tuple[Proof, Proof]:
        row, other = stale[place], newer[place]
        newest = clause(int(numbers[other])).further(
            ", as read {read} through {node} had shown (process {process})",
            read=columns["read"][other],
            node=nodes[other],
            process=columns["process"][other],
        )
        return clause(int(numbers[row])), newest

    return told
