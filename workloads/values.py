"""The value of a record: a number of 8 bytes, and padding."""

from typing import Final

__all__ = ["VALUE_BYTES_MIN"]

VALUE_BYTES_MIN: Final = 8
