"""What a run must be started with so that a fault can be injected into its nodes."""

from enum import Enum


class Prerequisite(Enum):
    """A means that a fault needs."""

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
