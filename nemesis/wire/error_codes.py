"""Kafka's errors: their codes and names. To import this takes a third of a second."""

from kio.schema.errors import ErrorCode

__all__ = ["error_code", "error_name", "error_names"]


def error_name(code: ErrorCode) -> str:
    """Return the name as Kafka writes it: "NONE", "INELIGIBLE_REPLICA"."""
    return code.name.upper()


def error_code(name: str) -> ErrorCode:
    """Return the error with this name; raise KeyError for an unknown one."""
    return ErrorCode[name.lower()]


def error_names() -> tuple[str, ...]:
    """Return the names of all errors."""
    return tuple(map(error_name, ErrorCode))
