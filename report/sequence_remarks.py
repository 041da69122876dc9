"""The omissions of a sequence picture, in words: silence must not pass for quiet."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from history.manifest import Manifest
from report.notation import counted, integer

__all__ = ["left_out_of", "too_many", "unrecorded"]

_APIS_NAMED: Final = 6


def unrecorded(manifest: Manifest | None, *, frame_count: int, noted: bool) -> Iterator[str]:
    """Yield a sentence for each witness that is absent."""
    recorded = manifest.recorded if manifest else ()
    if not frame_count:
        yield (
            "The wire was recorded, and nothing went over it."
            if "wire" in recorded
            else "This run has no tape of what its nodes said to each other."
        )
    if not noted:
        yield (
            "The metadata log that was recorded ties no decision to a time of this run."
            if "metadata_log" in recorded
            else "This run did not record the metadata log."
        )


def left_out_of(folded: Counter[str], left_out: Counter[str]) -> Iterator[str]:
    """Yield by API the frames that were folded away and the arrows that had no room."""
    if folded:
        yield f"Not drawn, for nothing was done to them: {_by_api(folded)}."
    if left_out:
        yield f"There was no room for {_by_api(left_out)}; a shorter window shows them."


def _by_api(counts: Counter[str]) -> str:
    named = [f"{integer(count)} {api}" for api, count in counts.most_common(_APIS_NAMED)]
    rest = sum(counts.values()) - sum(count for _, count in counts.most_common(_APIS_NAMED))
    return ", ".join([*named, *([f"{integer(rest)} others"] if rest else [])])


def too_many(count: int, noun: str, plural: str) -> Iterator[str]:
    """Yield a sentence that `count` more came later, if any did."""
    if count > 0:
        yield f"{counted(count, noun, plural=plural)} more came later in this window."
