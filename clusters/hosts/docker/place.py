"""A directory of this machine, and a container in which a process sees it at the same path."""

from pathlib import Path
from typing import Final

from clusters.hosts.local_host import LocalPlace
from clusters.hosts.place import NodeProcess
from clusters.port import NodeState

__all__ = ["ContainerPlace"]

_INTERFACE: Final = "eth0"
"""Docker's name for it in every container."""


class ContainerPlace(LocalPlace):
    """`clusters.hosts.place.Place` with a network of its own, as long as its process lives."""

    def __init__(
        self, directory: Path, *, process: NodeProcess, address: str, machine_address: str
    ) -> None:
        super().__init__(directory, process=process, address=address)
        self._machine_address = machine_address

    @property
    def interface(self) -> str:
        """The name, inside of the container, of what its packets go through."""
        return _INTERFACE

    @property
    def machine_address(self) -> str:
        """The address of this machine on the run's network."""
        return self._machine_address

    def namespace(self) -> Path | None:
        """The file by which its network is entered: each start makes a new one."""
        if self.process.pid is None or self.process.state() is NodeState.DOWN:
            return None
        return Path(f"/proc/{self.process.pid}/ns/net")
