"""The client libraries that a workload may choose from."""

from enum import StrEnum

__all__ = ["ClientLibrary"]


class ClientLibrary(StrEnum):
    """The client library of a client."""

    LIBRDKAFKA = "librdkafka"
    JAVA = "java"
    """Kafka's own, of any release."""
