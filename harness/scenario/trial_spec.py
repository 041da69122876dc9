"""The part of a trial beyond a scenario: how its faults come, and what else makes life hard.

A trial of `fencepost simulate` is a plan; stored, it is a scenario with these words under `trial`,
so that a run in virtual time carries out the very same world, and records it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fencepost.clusters.port import NodeName


class Storm(StrEnum):
    """The way in which faults come."""

    NONE = "none"
    PLAY = "play"
    MIX = "mix"
    WINDOWS = "windows"
    RELAYS = "relays"
    LATE_FETCHES = "late-fetches"
    LATE_WORDS = "late-words"
    CHAOS = "chaos"
    QUORUM = "quorum"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSpec:
    """The spec of one trial, apart from its cluster, its clients and its seed."""

    storm: Storm
    loss: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The share of messages that are lost; as many are duplicated, more come out of order."""
    drift_ppm: Mapping[NodeName, int] = field(default_factory=dict)
    """The drift of clocks that run fast or slow, in ppm, by node."""
    wipes: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The share of the crashes in chaos after which the disk is empty."""
    administers: bool = True
    """True if an administrator creates topics, changes settings and moves partitions meanwhile."""
    upgrades: bool = False
    """The metadata.version goes up by one on the way."""
    laggards: bool = False
    """Now and then a broker is told nothing by the controllers, and is not fenced meanwhile."""
    duels: bool = False
    """Two controllers do not hear each other, so that both stand for election."""
    small_answers: bool = False
    """An answer to a fetch brings one batch, so that logs are met half way."""
    regicidal: bool = False
    """Leaders of the quorum fall one after the other, and elections are quick."""
    old_software: bool = False
    """Now and then a broker starts as a version that does not know the present level."""
    other_ids: bool = False
    """Now and then a broker on ZooKeeper starts with the id of another in its configuration."""
    ill_timed: bool = False
    """Now and then a broker on ZooKeeper starts with time-outs that are out of order."""
    garbled: bool = False
    """Now and then a broker asks the controller on ZooKeeper for what cannot be."""
    unformatted: bool = False
    """Now and then a node starts on a disk that is new and was not formatted."""

    @property
    def draws(self) -> bool:
        """True if faults come from the seed, and not from a play, or not at all."""
        return self.storm not in (Storm.NONE, Storm.PLAY)
