"""The rules that links can have, by the protocols that they carry."""

from collections.abc import Set as AbstractSet
from typing import Final

from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.nemesis.wire.rules import (
    Action,
    Answer,
    Duplicate,
    LowerVersion,
    Match,
    Reorder,
    Watch,
)
from fencepost.nemesis.wire.zookeeper.messages import protocol_of

KAFKA_ALONE: Final = Answer | Duplicate | LowerVersion | Reorder
"""Actions that make frames, or send them on other connections."""
_NO_VERSIONS: Final = "a simulated cluster negotiates no versions"
_NO_QUORUM_FRAMES: Final = (
    "the servers of a simulated ensemble agree without frames, and their clients' have no names: "
    "cut servers off, pause, kill or wipe them, or run it as processes"
)
_UNREAD: Final = "the proxy does not read what its links carry"


def why_not_simulated(action: Action, match: Match) -> str | None:
    """Return why the wire of a simulated cluster cannot have such a rule; None if it can."""
    if isinstance(action, LowerVersion):
        return _NO_VERSIONS
    if match.api is not None and protocol_of(match.api) is not LinkProtocol.KAFKA:
        return _NO_QUORUM_FRAMES
    return None


def why_not_carried(
    action: Action, match: Match, protocols: AbstractSet[LinkProtocol]
) -> str | None:
    """Return why links with these protocols cannot have such a rule; None if they can."""
    if protocols == {LinkProtocol.BYTES}:
        return _why_not_unread(action, match)
    if match.api is not None and protocol_of(match.api) not in protocols:
        return f"none of its links carries {match.api}"
    named = LinkProtocol.KAFKA if match.api is None else protocol_of(match.api)
    if LinkProtocol.KAFKA in protocols and named is LinkProtocol.KAFKA:
        return None
    if isinstance(action, KAFKA_ALONE):
        return "messages of ZooKeeper can only be late or lost: they belong to their connections"
    if match.version_min is not None or match.version_max is not None:
        return "messages of ZooKeeper have no versions"
    return None


def _why_not_unread(action: Action, match: Match) -> str | None:
    if match.api is not None or match.version_min is not None or match.version_max is not None:
        return f"{_UNREAD}: there are no APIs to name"
    if match.client_id is not None or match.where or match.skip or match.times is not None:
        return f"{_UNREAD}: it finds no frames in it"
    if isinstance(action, KAFKA_ALONE | Watch):
        return f"{_UNREAD}: bytes can only be late or lost"
    return None
