"""The kinds of fault by the one name that each has: in mixes, plays, journals, checks and pages.

A kind is what was *asked for*; a row of `faults` is what was done. Mostly both are the same word. A
mix's `wipe` is a kill and a wipe, though, and its `restart` a stop and a start: their rows say
which kind they are of. Where plays have a word for a kind, that is its name.
"""

from collections.abc import Iterable
from typing import Final

from nemesis.mix import EPISODES, MixSpec
from nemesis.steps import Act, Bandwidth, Lay, Means, Partition, Step, Word, flat
from nemesis.verbs.catalogue import FAULTS
from nemesis.wire.rules import Watch
from nemesis.wire_words import RULE_WORDS, rule_word

__all__ = ["KINDS", "Breaking", "kind_of", "kinds_of_mix", "kinds_of_play"]

KINDS: Final = tuple(
    dict.fromkeys(
        (*FAULTS, *(w for w, action in RULE_WORDS.items() if action is not Watch), *EPISODES)
    )
)
"""All of them."""

Breaking = Act | Lay | Partition | Bandwidth
"""The steps that can break something."""


def kind_of(step: Breaking) -> str:
    """The kind of fault that this step is of: its mix's, else the word of a play."""
    if step.kind:
        return step.kind
    match step:
        case Act(word=Word.CUT_POWER, torn=True):
            return "torn"
        case Act(word=word):
            return str(word)
        case Lay():
            return rule_word(step)
        case Partition(by=by):
            return "packets" if by is Means.PACKETS else "partition"
        case Bandwidth():
            return "bandwidth"


def kinds_of_mix(spec: MixSpec) -> tuple[str, ...]:
    """The kinds that a mix draws from, each once."""
    return tuple(dict.fromkeys(spec.faults))


def kinds_of_play(play: Iterable[Step]) -> tuple[str, ...]:
    """The kinds that the steps of a play begin, each once; of a choice, those of all options."""
    begun = (step for step in flat(play) if isinstance(step, Breaking) and not _is_harmless(step))
    return tuple(dict.fromkeys(map(kind_of, begun)))


def _is_harmless(step: Breaking) -> bool:
    """Whether it only mends, copies or watches."""
    match step:
        case Act(word=word):
            return word not in FAULTS
        case Lay(action=action):
            return isinstance(action, Watch)
        case Partition() | Bandwidth():
            return False
