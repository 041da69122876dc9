"""Apache ZooKeeper as a system: its ensembles, as scenarios describe them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.port import ClusterSpec, NodeRole
from fencepost.clusters.system import Make, System
from fencepost.clusters.zookeeper.conditions import CONDITIONS
from fencepost.clusters.zookeeper.targets import TARGETS
from fencepost.clusters.zookeeper.view import first_view
from fencepost.history.failure import Mistakes

SERVER: Final = "server"
"""The role of every node."""
SERVER_PORT_COUNT: Final = 3
"""A server listens for clients, for followers and for elections."""
SIZES: Final = (1, 3, 5)
"""The counts of servers that an ensemble can have."""
_TICK_MS: Final = "200"
"""A tenth of what ZooKeeper's own example has, so that a dead leader is missed within 2 s."""
_RESERVED: Final = re.compile(
    r"server\.\d+|dataDir|dataLogDir|clientPort|clientPortAddress|dynamicConfigFile"
    r"|standaloneEnabled|4lw\.commands\.whitelist|secureClientPort.*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSpec(ClusterSpec):
    """An ensemble to build: how many servers, of which release, with which settings."""

    servers: int = 3
    release: str = "3.9.5"
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of every server, as in zoo.cfg. They win over the harness's defaults."""
    java_options: tuple[str, ...] = ()
    """Extra options of each server's JVM."""

    roles: ClassVar[tuple[NodeRole, ...]] = (
        NodeRole(name=SERVER, serves_clients=True, decides=True, port_count=SERVER_PORT_COUNT),
    )

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of servers."""
        return {SERVER: self.servers}

    @property
    def tick_ms(self) -> int:
        """The unit of all its timeouts: `tickTime`."""
        return int(self.settings.get("tickTime", _TICK_MS))

    @property
    def session_timeouts_ms(self) -> tuple[int, int]:
        """The least and the greatest timeout that a client's session can have."""
        stated = self.settings
        return (
            int(stated.get("minSessionTimeout", 2 * self.tick_ms)),
            int(stated.get("maxSessionTimeout", 20 * self.tick_ms)),
        )

    def check(self) -> None:
        """Raise SpecError, with the paths of the keys, for an ensemble that cannot be."""
        mistakes = Mistakes()
        if self.servers not in SIZES:
            mistakes.note(
                ("servers",),
                f"expected 1, 3 or 5 servers, found {self.servers} (an even count survives no "
                "more losses than the odd count below it)",
            )
        with mistakes.below("settings"):
            refuse_reserved(self.settings)
        mistakes.refuse()


def refuse_reserved(settings: Mapping[str, str]) -> None:
    """Raise SpecError for settings of servers that cannot be."""
    mistakes = Mistakes()
    for key, value in settings.items():
        if _RESERVED.fullmatch(key):
            mistakes.note(
                (key,),
                f"the harness makes {key} itself, as all names, addresses and directories of the "
                "servers; leave it out",
            )
        elif key in ("tickTime", "minSessionTimeout", "maxSessionTimeout") and not (
            value.isdecimal() and int(value)
        ):
            mistakes.note((key,), f"expected milliseconds, found {value!r}")
    mistakes.refuse()


ZOOKEEPER: Final = Make(
    name="zookeeper",
    driver_module="fencepost.clusters.zookeeper.driver",
    releases_module="fencepost.clusters.zookeeper.releases",
    title="ZooKeeper {release}",
)
"""A release of Apache ZooKeeper, as processes."""

SYSTEM: Final = System(
    name="zookeeper",
    spec=ZooKeeperSpec,
    makes=(ZOOKEEPER,),
    conditions=CONDITIONS,
    first_view=first_view,
    targets=TARGETS,
    drawn_targets=("one server", "leader"),
    tables=(
        *("ensemble", "server_disks", "transaction_log", "znodes"),
        *("node_settings", "log_findings"),
    ),
    protocols=frozenset(
        (
            LinkProtocol.ZOOKEEPER_CLIENT,
            LinkProtocol.ZOOKEEPER_QUORUM,
            LinkProtocol.ZOOKEEPER_ELECTION,
        )
    ),
    keyed=False,
)
