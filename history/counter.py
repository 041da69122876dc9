"""The number that writers put into a setting of a topic: `config_value` of writes and reads."""

from typing import Final

COUNTER_SETTING: Final = "retention.ms"
"""A setting that can carry a number: any value is legal, and a large one changes nothing."""
_BASE: Final = 1_000_000_000_000
"""32 years: nothing is old enough to be removed. Smaller values are the cluster's, not ours."""


def counter_value(config_value: int) -> str:
    """Return the value of the setting that carries this number."""
    return str(_BASE + config_value)


def counter_of(value: str | None) -> int | None:
    """Return the number that a value of the setting carries; None if it is not a writer's."""
    if value and value.isdigit() and int(value) >= _BASE:
        return int(value) - _BASE
    return None
