"""Tables of messages that no library has, in the terms of Kafka's own definition files."""

from typing import Any

from clusters.protocol.message_definitions import Field, Message, VersionRange

_FOREVER = 32767
_NEVER = VersionRange(first=0, last=-1)
always = VersionRange(first=0, last=_FOREVER)


def since(version: int) -> VersionRange:
    """Return the versions from this one on."""
    return VersionRange(first=version, last=_FOREVER)


def field(
    name: str,
    kind: str,
    *fields: Field,
    versions: VersionRange = always,
    tag: int | None = None,
    nullable: bool = False,
    default: Any = None,
) -> Field:
    """Make a field; `kind` is "int32", "[]uuid", …, or the name of a struct of `fields`.

    One with a tag is optional; `default` None is the type's own, "null" means no value.
    """
    element = kind.removeprefix("[]")
    return Field(
        name=name,
        type=element,
        array=element != kind,
        fields=fields,
        versions=versions,
        nullable=versions if nullable else _NEVER,
        tagged=_NEVER if tag is None else versions,
        tag=tag,
        flexible=None,
        default=default,
    )


def message(
    name: str, kind: str, *fields: Field, key: int | None = None, versions: VersionRange = always
) -> Message:
    """A message in flexible versions alone; `kind` is "metadata", "data" or "request"."""
    return Message(
        name=name, kind=kind, type_key=key, versions=versions, flexible=always, fields=fields
    )
