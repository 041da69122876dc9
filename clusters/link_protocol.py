"""The protocols that links carry, as far as a proxy on them can read one."""

from enum import StrEnum


class LinkProtocol(StrEnum):
    """The protocol of a link."""

    KAFKA = "kafka"
    ZOOKEEPER_CLIENT = "zookeeper client"
    """Requests of sessions, their answers, and events of watches."""
    ZOOKEEPER_QUORUM = "zookeeper quorum"
    """A follower's connection to its leader: `QuorumPacket`s, and a snapshot between two."""
    ZOOKEEPER_ELECTION = "zookeeper election"
    """The votes of two servers."""
    BYTES = "bytes"
    """A protocol that is not read: bytes are passed on, and a rule concerns them as they come."""
