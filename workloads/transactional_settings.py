"""Settings of transactional clients, in the words of either library, and of all of Kafka's own.

As for other producers (`workloads.librdkafka`, which has the reasons): every operation ends within
a known time, and what waits for an answer waits briefly, so that it is sent again over a new
connection while its first copy may still be on its way. A user's own settings win, except over
those that the recording rests on.
"""

from collections.abc import Mapping
from typing import Final

from fencepost.workloads.librdkafka import FAST_FAILOVER

_FIELDS: Final = {
    "transaction.timeout.ms": "transaction_timeout_ms",
    "socket.timeout.ms": "request_timeout_ms",
    "request.timeout.ms": "request_timeout_ms",
    "message.timeout.ms": "delivery_timeout_ms",
    "delivery.timeout.ms": "delivery_timeout_ms",
    "max.block.ms": "end_timeout_ms",
}
_RECORDING: Final = frozenset(
    {
        "bootstrap.servers",
        "metadata.broker.list",
        "client.id",
        "transactional.id",
        "enable.idempotence",
        "acks",
        "request.required.acks",
        "delivery.report.only.error",
        "key.serializer",
        "value.serializer",
    }
)


_JAVA_FAILOVER: Final = {
    "reconnect.backoff.ms": "50",
    "reconnect.backoff.max.ms": "500",
    "retry.backoff.ms": "100",
    "socket.connection.setup.timeout.ms": "3000",
    "metadata.max.age.ms": "3000",
}


def librdkafka_transaction_settings(
    *,
    bootstrap_servers: str,
    transaction_timeout_ms: int,
    request_timeout_ms: int,
    delivery_timeout_ms: int,
    settings: Mapping[str, str],
) -> dict[str, str]:
    """Return the settings of a librdkafka producer, but for its client.id and transactional.id."""
    return {
        **FAST_FAILOVER,
        "linger.ms": "0",
        **settings,
        "bootstrap.servers": bootstrap_servers,
        "transaction.timeout.ms": str(transaction_timeout_ms),
        "socket.timeout.ms": str(request_timeout_ms),
        "request.timeout.ms": str(request_timeout_ms),
        "message.timeout.ms": str(delivery_timeout_ms),
    }


def java_consumer_settings(*, bootstrap_servers: str, isolation: str) -> dict[str, str]:
    """Return the settings of a Java consumer, but for its client.id and group.id."""
    bytes_as_they_are = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    return {
        **_JAVA_FAILOVER,
        "request.timeout.ms": "6000",
        "default.api.timeout.ms": "6000",
        "bootstrap.servers": bootstrap_servers,
        "isolation.level": isolation,
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        "check.crcs": "true",
        "fetch.max.wait.ms": "100",
        # Every field of a record is a call from Python: 500 records take about 0.2 s.
        "max.poll.records": "500",
        "key.deserializer": bytes_as_they_are,
        "value.deserializer": bytes_as_they_are,
    }


def java_producer_settings(
    *,
    bootstrap_servers: str,
    transaction_timeout_ms: int,
    request_timeout_ms: int,
    delivery_timeout_ms: int,
    end_timeout_ms: int,
    settings: Mapping[str, str],
) -> dict[str, str]:
    """Return the settings of a Java producer, but for its client.id and transactional.id."""
    return {
        **java_idempotent_settings(
            bootstrap_servers=bootstrap_servers,
            linger_ms=0,
            request_timeout_ms=request_timeout_ms,
            delivery_timeout_ms=delivery_timeout_ms,
            settings=settings,
        ),
        "transaction.timeout.ms": str(transaction_timeout_ms),
        "max.block.ms": str(end_timeout_ms),
    }


def java_idempotent_settings(
    *,
    bootstrap_servers: str,
    linger_ms: int,
    request_timeout_ms: int,
    delivery_timeout_ms: int,
    settings: Mapping[str, str],
) -> dict[str, str]:
    """Return the settings of a Java producer with no transactions, but for its client.id."""
    bytes_as_they_are = "org.apache.kafka.common.serialization.ByteArraySerializer"
    return {
        **_JAVA_FAILOVER,
        "linger.ms": str(linger_ms),
        **settings,
        "bootstrap.servers": bootstrap_servers,
        "acks": "all",
        "enable.idempotence": "true",
        "key.serializer": bytes_as_they_are,
        "value.serializer": bytes_as_they_are,
        "request.timeout.ms": str(request_timeout_ms),
        "delivery.timeout.ms": str(delivery_timeout_ms),
        # A send waits for metadata no longer than for its answer.
        "max.block.ms": str(delivery_timeout_ms),
    }


def refused_transactional_setting(settings: Mapping[str, str]) -> str | None:
    """Return why these settings of a user's are refused, or None."""
    for name in settings:
        if name in _FIELDS:
            return f"setting {name!r} is stated by the field {_FIELDS[name]}"
        if name in _RECORDING:
            return f"setting {name!r} is set by the workload, since the recording depends on it"
    return None
