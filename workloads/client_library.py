"""The client libraries that a workload may choose from."""

from enum import StrEnum


class ClientLibrary(StrEnum):
    """The client library of a client."""

    LIBRDKAFKA = "librdkafka"
    JAVA = "java"
    """Kafka's own, of any release."""
