"""Conditions as a play writes them: `{isr: {t-0: [1]}}`, `{unfenced: broker-2}`, `{held: join}`.

Each has one word and one value. Some are every system's, the others the cluster's own system's.
"""

from clusters.observation import CONDITIONS, AllRecovered, Condition
from clusters.stage import Stage
from clusters.systems import SYSTEMS
from history.failure import SpecError
from nemesis.words import did_you_mean

__all__ = ["parse_condition"]

_RECOVERED = "recovered"


def parse_condition(value: object, *, stage: Stage) -> Condition:
    """Parse `{isr: {t-0: [1]}}`, `{unfenced: broker-2}`, …: one word, one value."""
    if value == _RECOVERED:
        return AllRecovered()
    known = {**SYSTEMS[stage.system].conditions, **CONDITIONS}
    if not isinstance(value, dict) or len(value) != 1:
        words = ", ".join((*known, _RECOVERED))
        raise SpecError((), f"an await takes one condition; allowed: {words}")
    word, operand = next(iter(value.items()))
    if word not in known:
        found = f"unknown condition {word!r}; {did_you_mean(str(word), (*known, _RECOVERED))}"
        raise SpecError((str(word),), found)
    try:
        return known[word](word, operand, stage)
    except SpecError as error:
        raise error.below(str(word)) from None
