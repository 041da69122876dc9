"""Java properties files, which `Properties.load` reads back as they were meant."""

import re
from collections.abc import Mapping


def properties_file(properties: Mapping[str, str]) -> str:
    """Return the text of a Java properties file."""
    return "".join(
        f"{_escaped_key(key)}={_escaped_value(value)}\n"
        for key, value in sorted(properties.items())
    )


def _escaped_value(value: str) -> str:
    text = escaped(value)
    return f"\\{text}" if text[:1] in (" ", "\t", "\f") else text


def escaped(value: str) -> str:
    """Return the text that `Properties.load` reads back; it takes non-ASCII text for Latin-1."""
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return "".join(
        one if one.isascii() else "".join(f"\\u{unit:04x}" for unit in _utf16(one)) for one in text
    )


def _escaped_key(key: str) -> str:
    return re.sub(r"([=:#! \t\f])", r"\\\1", escaped(key))


def _utf16(text: str) -> tuple[int, ...]:
    encoded = text.encode("utf-16-be")
    return tuple(int.from_bytes(encoded[at : at + 2]) for at in range(0, len(encoded), 2))
