"""The state that all parts of a broker share: its identity, its rules, its applied metadata."""

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.nodes.image import MetadataImage, Registration
from fencepost.clusters.reference.nodes.rules import Rules


class Situation:
    """The situation of a broker. Its life cycle sets the epoch, its replay the image."""

    __slots__ = (
        "alarm",
        "broker_epoch",
        "configuration",
        "controller_id",
        "fetch_level",
        "image",
        "incarnation_id",
        "is_over",
        "level",
        "node_id",
        "offered_level",
        "rules",
        "serves_until_ns",
    )

    def __init__(self, configuration: Configuration, rules: Rules) -> None:
        self.alarm = Alarm()
        self.configuration = configuration
        self.rules = rules
        self.node_id = configuration.node_id
        self.incarnation_id = 0
        self.broker_epoch = -1
        """The broker epoch of the last registration that was answered; -1 before."""
        self.controller_id = -1
        """The leader of the quorum, as far as the broker knows; -1: none is known."""
        self.serves_until_ns = 0
        """The time until which it answers clients, unless it hears otherwise; 0: it does not."""
        self.is_over = False
        """True once it ends: nothing is done any more but what its disk needs."""
        self.image = MetadataImage()
        """Everything that is applied."""
        self.level = self.image.level
        """The image's metadata.version."""
        self.offered_level = self.level
        """The metadata.version whose APIs this broker offers: all have applied it."""
        self.fetch_level = self.level
        """The one by which it fetches: that of its registration, then whichever it offers."""

    def own_registration(self) -> Registration | None:
        """The registration of this process, once its record is applied."""
        found = self.image.brokers.get(self.node_id)
        return None if found is None or found.incarnation_id != self.incarnation_id else found

    def min_insync_replicas(self, topic: str) -> int:
        """Return the value in force for a topic: its own, the brokers', or the configuration's."""
        name = "min.insync.replicas"
        configs = self.image.configs
        for resource in ((2, topic), (4, str(self.node_id)), (4, "")):
            value = configs.get(resource, {}).get(name)
            if value is not None and value.isdecimal():
                return int(value)
        return self.configuration.min_insync_replicas
