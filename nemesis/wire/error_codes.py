"""Kafka's errors: their codes and names. To import this takes a third of a second."""

from typing import Final

from kio.schema.errors import ErrorCode

from fencepost.clusters.protocol.columns import error_name
from fencepost.clusters.protocol.controlled_states import INVALID_INCARNATION_ID


def error_code(name: str) -> ErrorCode:
    """Return the error with this name; raise KeyError for an unknown one."""
    return ErrorCode[name.lower()]


def error_names() -> tuple[str, ...]:
    """Return the names of all errors."""
    return tuple(map(error_name, ErrorCode))


def name_by_code(code: int) -> str:
    """Return the name of an error by its code: Kafka's, or the draft's own; else the number."""
    return _NAMES.get(code, str(code))


_NAMES: Final[dict[int, str]] = {code.value: error_name(code) for code in ErrorCode}
_NAMES[INVALID_INCARNATION_ID] = "INVALID_INCARNATION_ID"
