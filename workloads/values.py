"""The value of a record: a number of 8 bytes, and padding."""

from typing import Final

VALUE_BYTES_MIN: Final = 8
