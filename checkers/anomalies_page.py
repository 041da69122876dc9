"""`docs/anomalies.md`, drawn from the catalogue, and `anomalies.txt`, the names of its anomalies.

`python -m checkers.anomalies_page` writes both.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from checkers.catalogue import CATALOGUE, MODULES, names_of
from checkers.entry import SUBJECTS, CatalogueEntry, Kind, Nearness, Strength

_TERMS: Final = """\
A check answers valid, invalid or unknown, and the verdict is the worst of them, invalid first. It
counts the cases that it judged. One without any case is *not judged*, which is not valid, and one
whose findings are all legal on the cluster of the run is a *figure*; a run of nothing else is
unknown, and so is one in which a check that the scenario demands was not judged.

- *key*: a topic-partition. *value*: unique a key. *operation*: a send, a poll or a final read of
  one process; it ends ok, fail (it surely did not happen) or info (it may have happened; so does
  every operation that is still open at the end).
- *ok read*: a poll or final read that is ok. *complete final read*: one that is ok; it read the key
  from its first to its last offset, after healing.
- *must have happened*: ok, or info with a value of it in some ok read.
- *log of a key*: which value stands at which offset, from all reads whatever their outcome and from
  sends that must have happened and whose offset is known.
- *position*: the rank of an offset among the offsets that hold a record; gaps are legal. *delta* of
  two records: the difference of their positions, 1 where one is not known.
- *session*: an unbroken ownership of a key by a process; a new assignment, or a rebalance that took
  the key away and gave it back, starts the next one.
- Records must not be removed by retention or compaction while a run lasts.

Why a rule is sound, and what it cannot see, is argued at the top of the code of its check.\
"""

_HEADINGS: Final = {
    "A": "Assumptions: broken means unknown",
    "G": "Grounds: lacking means unknown",
    "S": "Bounds of service that a scenario promises",
    "D": "Anomalies of the data plane: a partition is a log",
    "C": "Anomalies of the control plane: what the controller decides",
    "V": "Anomalies of visibility: what brokers show of the metadata",
    "L": "Anomalies of identity and life cycle",
    "Z": "Anomalies of znodes: what clients of a ZooKeeper ensemble see",
    "M": "Open histories: is there an order that explains every answer",
}
"""The titles of the catalogue's parts, by the first letter of their ids."""


def anomalies_page() -> str:
    """Return the catalogue as a document for users."""
    return "\n".join(_lines())


def anomalies_list() -> str:
    """Return the names of all anomalies, one a line: scenarios are read without the checks."""
    return "".join(f"{name}\n" for name in names_of(Kind.ANOMALY))


def _lines() -> Iterator[str]:
    yield "# What is checked"
    yield ""
    yield "Every check of a stored run, by subject: its rule, meaning, cases and source."
    yield "Generated from the catalogue by `python -m checkers.anomalies_page`; do not edit."
    yield ""
    yield _TERMS
    for letter in SUBJECTS:
        heading = _HEADINGS[letter]
        entries = [entry for entry in CATALOGUE if entry.id.startswith(letter)]
        if entries:
            yield ""
            yield f"## {heading}"
        for entry in entries:
            yield from _section(entry)
    yield ""


def _section(entry: CatalogueEntry) -> Iterator[str]:
    yield ""
    yield f"### {entry.id} `{entry.name}`: {entry.title}"
    yield ""
    yield entry.meaning
    yield ""
    yield f"- Rule: {entry.rule}"
    if entry.kind is Kind.ANOMALY:
        yield f"- Strength: {_strength(entry)}"
    if entry.nearness is not None:
        nearness = f"{entry.nearness.value} of {len(Nearness)}, {entry.nearness.name.lower()}"
        yield f"- Nearness to the cause: {nearness}"
    yield f"- Case: {entry.case}"
    if entry.needs:
        yield f"- Asked if the run recorded: {', '.join(f'`{name}`' for name in entry.needs)}"
    if entry.bound:
        word = entry.bound.rpartition("_")[0]
        yield f"- Asked if the scenario demands it: `require: {{{word}: …}}`"
    if entry.rests_on:
        yield f"- Rests on: {', '.join(f'`{name}`' for name in entry.rests_on)}"
    if entry.rests_on_zookeeper:
        names = ", ".join(f"`{name}`" for name in entry.rests_on_zookeeper)
        yield f"- Rests on, where ZooKeeper has the metadata: {names}"
    yield f"- Source: {entry.source}"
    path = f"{MODULES[entry.name].replace('.', '/')}.py"
    yield f"- Code: [{path}](../{path})"


def _strength(entry: CatalogueEntry) -> str:
    if entry.strength is Strength.ALLOWED_IF:
        return f"never, but reported and allowed if {entry.allowed_if}"
    if entry.strength is Strength.FIGURE:
        return "a figure: measured, and never a verdict"
    return "never"


if __name__ == "__main__":
    folder = Path(__file__).parent
    for target, text in (
        (folder.parent / "docs" / "anomalies.md", anomalies_page()),
        (folder / "anomalies.txt", anomalies_list()),
    ):
        target.write_text(text)
        sys.stdout.write(f"{target}\n")
