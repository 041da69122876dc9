"""Keys as Kafka addresses them."""

from collections.abc import Sequence


def places_of(keys: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Return topic and partition of each key, `topic-partition`, in order; topics may have `-`."""
    split = (key.rpartition("-") for key in keys)
    return tuple((topic, int(partition)) for topic, _, partition in split)


def key_indices(keys: Sequence[str]) -> dict[tuple[str, int], int]:
    """Return the index of a key, from its topic and partition."""
    return {place: index for index, place in enumerate(places_of(keys))}
