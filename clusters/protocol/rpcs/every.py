"""All RPCs that have tables."""

from types import ModuleType
from typing import Final

from fencepost.clusters.protocol.rpc import RpcTable
from fencepost.clusters.protocol.rpcs import brokers, controllers, operators, quorum

_MODULES: Final[tuple[ModuleType, ...]] = (brokers, controllers, operators, quorum)
EVERY_RPC: Final = tuple(
    one for module in _MODULES for one in vars(module).values() if isinstance(one, RpcTable)
)
