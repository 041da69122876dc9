"""The levels of `metadata.version`: what each of them adds to the protocol."""

from typing import Final

METADATA_VERSION: Final = "metadata.version"
"""The feature."""

LEVEL_REGISTRATION: Final = 1
"""Registration, leases and fencing alone (KIP-631)."""
LEVEL_EPOCHS: Final = 2
"""Broker epochs of ISR members (KIP-903): Fetch version 15 and AlterPartition version 3."""
LEVEL_VISIBILITY: Final = 3
"""The lowest acknowledged offset: BrokerHeartbeat (key 63) version 1."""
KAFKA_LEVELS: Final = {LEVEL_REGISTRATION: 8, LEVEL_EPOCHS: 10, LEVEL_VISIBILITY: 14}
"""The levels of Kafka's own metadata.version whose record formats these have: 3.4-IV0, 3.5-IV1 and,
since Kafka has none with LEVEL_VISIBILITY, 3.6-IV2. Tables of a run state these, as all others do.
"""
