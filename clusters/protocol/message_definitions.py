"""Kafka's own definitions of its messages: the JSON files that lie in every release's jars.

The same files from which Kafka generates its serializers. Messages are read with them as the
release that wrote them does, and a new release, or a build of one's own, needs no upkeep here.
Messages that no release has are made in the same terms (`message`, `field`).

Format: https://github.com/apache/kafka/blob/trunk/clients/src/main/resources/common/message/README.md
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_FOREVER: Final = 32767


class DefinitionError(Exception):
    """The text is not a definition of a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRange:
    """A range of versions; empty where `last` is below `first`."""

    first: int
    last: int

    @classmethod
    def parsed(cls, text: str) -> Self:
        """Return the versions of "none", "3", "0-2" or "1+"."""
        if text == "none":
            return cls(first=0, last=-1)
        found = re.fullmatch(r"(\d+)(?:(\+)|-(\d+))?", text)
        if found is None:
            raise DefinitionError(f'"{text}" is not a range of versions')
        first = int(found[1])
        return cls(first=first, last=_FOREVER if found[2] else int(found[3] or first))

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


_NO_VERSIONS: Final = VersionRange(first=0, last=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a struct."""

    name: str
    """The name as Kafka's tools write it: `partitionId`."""
    type: str
    """"int32", "string", …, or the name of a struct; of an array, the type of its elements."""
    array: bool
    fields: tuple["Field", ...]
    """The fields of a struct."""
    versions: VersionRange
    nullable: VersionRange
    tagged: VersionRange
    tag: int | None
    flexible: VersionRange | None
    """The flexible versions of a field, where they differ from its message's."""
    default: Any
    """The default as the definition states it; None: the type's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message, or a record of a log."""

    name: str
    kind: str
    """"metadata", "data", "request", …"""
    type_key: int | None
    """Its number among messages of its kind; None: it has none."""
    versions: VersionRange
    flexible: VersionRange
    fields: tuple[Field, ...]


ALWAYS: Final = VersionRange(first=0, last=_FOREVER)


def since(version: int) -> VersionRange:
    """Return the versions from this one on."""
    return VersionRange(first=version, last=_FOREVER)


def field(
    name: str,
    kind: str,
    *fields: Field,
    versions: VersionRange = ALWAYS,
    tag: int | None = None,
    nullable: bool = False,
    default: Any = None,
) -> Field:
    """Make a field of a message that no release defines.

    `kind` is "int32", "[]uuid", …, or the name of a struct of `fields`. One with a tag is optional;
    `default` None is the type's own, "null" means no value.
    """
    element = kind.removeprefix("[]")
    return Field(
        name=name,
        type=element,
        array=element != kind,
        fields=fields,
        versions=versions,
        nullable=versions if nullable else _NO_VERSIONS,
        tagged=_NO_VERSIONS if tag is None else versions,
        tag=tag,
        flexible=None,
        default=default,
    )


def message(
    name: str, kind: str, *fields: Field, key: int | None = None, versions: VersionRange = ALWAYS
) -> Message:
    """A message in flexible versions alone; `kind` is "metadata", "data" or "request"."""
    return Message(
        name=name, kind=kind, type_key=key, versions=versions, flexible=ALWAYS, fields=fields
    )


def parsed_message(text: str) -> Message:
    """A definition as it lies in a jar. Raises DefinitionError."""
    try:
        found = json.loads(_COMMENT.sub(lambda match: match[1] or " ", text))
        structs = {struct["name"]: struct["fields"] for struct in found.get("commonStructs", ())}
        return Message(
            name=found["name"],
            kind=found["type"],
            type_key=found.get("apiKey"),
            versions=VersionRange.parsed(found["validVersions"]),
            flexible=_versions(found, "flexibleVersions"),
            fields=_fields(found.get("fields", ()), structs),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DefinitionError(f"not a definition of a message: {error!r}") from error


def _fields(
    found: Sequence[Mapping[str, Any]], structs: Mapping[str, Sequence[Mapping[str, Any]]]
) -> tuple[Field, ...]:
    return tuple(_field(one, structs) for one in found)


def _field(found: Mapping[str, Any], structs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Field:
    whole = found["type"]
    element = whole.removeprefix("[]")
    return Field(
        name=found["name"][:1].lower() + found["name"][1:],
        type=element,
        array=element != whole,
        fields=_fields(found.get("fields", structs.get(element, ())), structs),
        versions=VersionRange.parsed(found.get("versions", found.get("taggedVersions", "0+"))),
        nullable=_versions(found, "nullableVersions"),
        tagged=_versions(found, "taggedVersions"),
        tag=found.get("tag"),
        flexible=_versions(found, "flexibleVersions") if "flexibleVersions" in found else None,
        default=found.get("default"),
    )


def _versions(found: Mapping[str, Any], name: str) -> VersionRange:
    return VersionRange.parsed(found[name]) if name in found else _NO_VERSIONS
