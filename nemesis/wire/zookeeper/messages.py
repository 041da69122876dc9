"""ZooKeeper's messages: their names as its source writes them, and a key for each.

Requests of clients are named as in `ZooDefs.OpCode` ("setData"), packets of a quorum as in `Leader`
("COMMIT"), records without such a name by their class ("WatcherEvent"). None is a name of Kafka's.
Keys lie beyond Kafka's, a range for each port, so that one rulebook serves links of all protocols.
"""

from collections.abc import Mapping
from typing import Final

from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.protocol.zookeeper_records import OPERATIONS
from fencepost.nemesis.wire.rules import Direction

KEY_MIN: Final = 1500
"""Below are the keys of Kafka's APIs."""
KEY_END: Final = 5000
"""Beyond all keys."""
_RANGE: Final = 1000
_BASES: Final = {
    LinkProtocol.ZOOKEEPER_CLIENT: 2000,
    LinkProtocol.ZOOKEEPER_QUORUM: 3000,
    LinkProtocol.ZOOKEEPER_ELECTION: 4000,
}


def _keys(protocol: LinkProtocol, types: Mapping[str, int]) -> dict[str, int]:
    return {name: _BASES[protocol] + number for name, number in types.items()}


CLIENT: Final[Mapping[str, int]] = _keys(
    LinkProtocol.ZOOKEEPER_CLIENT,
    {name: one.type for name, one in OPERATIONS.items() if name != "error"} | {"WatcherEvent": 0},
)
"""The client port's."""

QUORUM: Final[Mapping[str, int]] = _keys(
    LinkProtocol.ZOOKEEPER_QUORUM,
    {
        "TREE": 0,  # A piece of the snapshot behind SNAP: no packet, and not in `Leader`.
        "REQUEST": 1,
        "PROPOSAL": 2,
        "ACK": 3,
        "COMMIT": 4,
        "PING": 5,
        "REVALIDATE": 6,
        "SYNC": 7,
        "INFORM": 8,
        "COMMITANDACTIVATE": 9,
        "NEWLEADER": 10,
        "FOLLOWERINFO": 11,
        "UPTODATE": 12,
        "DIFF": 13,
        "TRUNC": 14,
        "SNAP": 15,
        "OBSERVERINFO": 16,
        "LEADERINFO": 17,
        "ACKEPOCH": 18,
        "INFORMANDACTIVATE": 19,
    },
)
"""The quorum port's."""

ELECTION: Final[Mapping[str, int]] = _keys(
    LinkProtocol.ZOOKEEPER_ELECTION, {"InitialMessage": 0, "Notification": 1}
)
"""The election port's."""

KEYS: Final[Mapping[str, int]] = {**CLIENT, **QUORUM, **ELECTION}
"""Keys by name."""

NAMES: Final[Mapping[int, str]] = {key: name for name, key in KEYS.items()}

_FROM_LEARNERS: Final = ("REQUEST", "ACK", "FOLLOWERINFO", "OBSERVERINFO", "ACKEPOCH")
_BOTH_WAYS: Final = (*CLIENT, "PING", "REVALIDATE", "Notification")
ONE_WAY: Final[Mapping[str, Direction]] = {
    **{name: Direction.RESPONSE for name in KEYS if name not in _BOTH_WAYS},
    "WatcherEvent": Direction.RESPONSE,
    **dict.fromkeys((*_FROM_LEARNERS, "InitialMessage"), Direction.REQUEST),
}
"""The messages that go in one direction only, counted from who dialled: a follower its leader."""


def protocol_of(name: str) -> LinkProtocol:
    """Return the protocol that has a message of this name; all others are Kafka's."""
    key = KEYS.get(name)
    if key is None:
        return LinkProtocol.KAFKA
    return next(protocol for protocol, base in _BASES.items() if key < base + _RANGE // 2)


def type_of(key: int) -> int:
    """Return the number by which the message itself states its type."""
    return key - round(key, -3)
