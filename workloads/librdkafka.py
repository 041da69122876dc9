"""Settings of librdkafka, each with its reason, for clients of a faulty cluster.

They lose sight of it for as short a time as they can, and every operation of theirs ends within a
known time. librdkafka's defaults are made for production (wait up to 10 s before reconnecting, 60 s
for an answer), and would hide a broker that is back for that long. A user's own settings win,
except over those that the recording rests on.
"""

from collections.abc import Mapping
from typing import Final

FIELDS_OF_SETTINGS: Final = {
    "acks": "acks",
    "request.required.acks": "acks",
    "enable.idempotence": "idempotence",
    "linger.ms": "linger_ms",
    "queue.buffering.max.ms": "linger_ms",
    "message.timeout.ms": "message_timeout_ms",
    "delivery.timeout.ms": "message_timeout_ms",
    "isolation.level": "isolation",
}
"""Settings that have a field of their own in the spec: set here and there, the two would differ."""

_RECORDING: Final = frozenset(
    {
        "bootstrap.servers",
        "metadata.broker.list",
        "client.id",
        "group.id",
        # Without a report on every record, most sends would stay open for ever.
        "delivery.report.only.error",
        # Offsets are committed only once what was read up to there is on disk.
        "enable.auto.commit",
        "auto.commit.enable",
        "enable.auto.offset.store",
        "enable.partition.eof",
        # Sends of a transaction end when it does, which this workload does not record.
        "transactional.id",
    }
)

FAST_FAILOVER: Final = {
    # A broker that was killed and is back should be in use within half a second, not 10 s.
    "reconnect.backoff.ms": "50",
    "reconnect.backoff.max.ms": "500",
    "retry.backoff.ms": "100",
    "retry.backoff.max.ms": "500",
    # A paused broker's kernel accepts connections without an answer: notice within 3 s (10, 30).
    "socket.connection.setup.timeout.ms": "3000",
    "api.version.request.timeout.ms": "3000",
    # An answer that did not come within 6 s (60) will not come: the broker is paused or cut off.
    # Two attempts then fit into a message's time-out.
    "socket.timeout.ms": "6000",
    # A leader that moved without an error to tell of it (a cut link) is found within 3 s (300).
    "topic.metadata.refresh.interval.ms": "3000",
    # Small requests must not wait for the acknowledgement of the ones before.
    "socket.nagle.disable": "true",
    # KIP-714: brokers would be asked for telemetry subscriptions that no client here wants.
    "enable.metrics.push": "false",
}

_CONSUMER: Final = {
    # Offsets are committed by the client itself, after it has recorded what it read.
    "enable.auto.commit": "false",
    # The whole log is evidence, also after a truncation below the position.
    "auto.offset.reset": "earliest",
    # A broken record must not pass as data.
    "check.crcs": "true",
    # A lagging consumer prefetches 8 MB, not 64.
    "queued.max.messages.kbytes": "8192",
    "fetch.wait.max.ms": "100",
    "fetch.error.backoff.ms": "100",
}

# With KIP-848 (`group.protocol: consumer`) these are the broker's to say, and refused in a client.
_CLASSIC_GROUP: Final = {
    # The shortest session that a broker accepts by default (group.min.session.timeout.ms).
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
}


def producer_settings(
    *,
    bootstrap_servers: str,
    acks: str,
    idempotence: bool,
    linger_ms: int,
    message_timeout_ms: int,
    in_flight_max: int,
    settings: Mapping[str, str],
) -> dict[str, str]:
    """Return the settings of a producer, but for its client.id."""
    return {
        **FAST_FAILOVER,
        # The broker's own wait for replicas ends before the client's wait for the broker, so that
        # an ISR that does not shrink in time shows as an error of Kafka's and not of the network.
        "request.timeout.ms": "5000",
        # Without idempotence, more than one request in flight can change the order of records when
        # the first one is retried.
        "max.in.flight.requests.per.connection": "5" if idempotence else "1",
        **settings,
        "bootstrap.servers": bootstrap_servers,
        "acks": acks,
        "enable.idempotence": _text(idempotence),
        "linger.ms": str(linger_ms),
        "message.timeout.ms": str(message_timeout_ms),
        # The client keeps to `in_flight_max`; librdkafka's own limits must not come first.
        "queue.buffering.max.messages": str(2 * in_flight_max),
        "queue.buffering.max.kbytes": "2097151",
    }


def consumer_settings(
    *, bootstrap_servers: str, isolation: str, settings: Mapping[str, str]
) -> dict[str, str]:
    """Return the settings of a consumer, but for its client.id and group.id."""
    return {
        **FAST_FAILOVER,
        **_CONSUMER,
        **({} if settings.get("group.protocol") == "consumer" else _CLASSIC_GROUP),
        **settings,
        "bootstrap.servers": bootstrap_servers,
        "isolation.level": isolation,
    }


def final_reader_settings(*, bootstrap_servers: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a final reader, but for its client.id and group.id."""
    return {
        **consumer_settings(
            bootstrap_servers=bootstrap_servers, isolation="read_uncommitted", settings=settings
        ),
        # A reset in the middle would read some records twice and miss others: fail, and start over.
        "auto.offset.reset": "error",
        # Tells the end where the last offsets hold no records.
        "enable.partition.eof": "true",
    }


def refused_setting(settings: Mapping[str, str]) -> str | None:
    """Return why these settings of a user's are refused, or None."""
    for name in settings:
        if name in FIELDS_OF_SETTINGS:
            return f"setting {name!r} is stated by the field {FIELDS_OF_SETTINGS[name]}"
        if name in _RECORDING:
            return f"setting {name!r} is set by the workload, since the recording depends on it"
    return None


def _text(flag: bool) -> str:  # noqa: FBT001  # a conversion, not an option
    return str(flag).lower()
