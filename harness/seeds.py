"""All randomness flows from the run's seed through named streams.

Two streams of one seed are independent, so that drawing more from one (another client) leaves the
others (the nemesis) as they were.
"""

import hashlib
import random
import secrets

SEED_MAX = 2**31 - 1
"""The largest seed: seeds stay short enough to be typed."""


def new_seed() -> int:
    """Return a random seed, for a run whose user names none."""
    return secrets.randbelow(SEED_MAX) + 1


def stream_seed(seed: int, name: str) -> int:
    """Return the seed of the stream `name`: the same on every machine and Python."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & SEED_MAX


def stream(seed: int, name: str) -> random.Random:
    """Return the stream `name` of a seed."""
    return random.Random(stream_seed(seed, name))  # noqa: S311  # repeatable, not secret
