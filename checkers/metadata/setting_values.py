"""The numbers that settings state, as Kafka and the reference cluster read them.

A file has words, and a release takes more of them than one may think of: an
`inter.broker.protocol.version` is "2", "1.0" or "3.9-IV0". What is no number states none here, and
what a check would have judged by it is not judged.
"""

import re
from typing import Final

_WHOLE: Final = re.compile(r"[+-]?\d{1,10}")
_HIGHEST: Final = 2**31 - 1


def whole_number(value: str | None) -> int | None:
    """Return the number that a setting states, as Kafka parses an `INT`; None if it states none."""
    stated = "" if value is None else value.strip()
    number = int(stated) if _WHOLE.fullmatch(stated) else None
    return None if number is None or abs(number) > _HIGHEST else number
