"""How to run a scenario, apart from what it says itself."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["RunOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to run a scenario; what to run is the scenario's."""

    results: Path
    seed: int
    command: str
    """The command line that repeats this run, its seed included."""
    keep_data: bool = False
    """Keep the nodes' data also if the run is valid."""
    alongside: bool = False
    """Run although another run is under way on this machine."""
    port_base: int | None = None
    """The first of the ports that nodes listen on; None: any free ones."""
    spark_master: str = "local[*]"
    wire: bool = True
    """Lead the links between the nodes over the proxy, which tapes what the control plane says."""
