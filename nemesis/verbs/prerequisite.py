"""The means that a run has to have from its start so that a fault can be done to its nodes."""

from enum import Enum


class Prerequisite(Enum):
    """A means that a fault takes."""

    DISKS = "disks"
    """Disks of their own, or a library that notes what they sync."""
    DISK_IMAGES = "disk images"
    """Disks of their own."""
    CLOCKS = "clocks"
    GROUPS = "control groups"
    PROXY = "proxy"
    """An address of each link's own, on which the proxy listens."""
    NETWORKS = "networks"
    """Networks of their own."""
