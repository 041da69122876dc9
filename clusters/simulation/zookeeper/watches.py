"""The watches at a server, and what they have missed when a client sets them again."""

from fencepost.clusters.data_tree.requests import Fired, read
from fencepost.clusters.data_tree.tree import DataTree
from fencepost.clusters.node_port.zookeeper import (
    Exists,
    GetChildren,
    GetData,
    WatchType,
    ZkOutcome,
)
from fencepost.clusters.simulation.zookeeper.frames import SetWatches

_ByPath = dict[str, dict[int, None]]


class Watches:
    """Connections by the path that they watch: its data or existence, or its children."""

    __slots__ = ("_children", "_data")

    def __init__(self) -> None:
        self._data: _ByPath = {}
        self._children: _ByPath = {}

    def read(
        self, operation: GetData | Exists | GetChildren, connection: int, tree: DataTree
    ) -> ZkOutcome:
        """Return what a read shows, and set its watch; a znode that is not there has one kind."""
        outcome = read(tree, operation)
        if operation.watch and (isinstance(operation, Exists) or not outcome.error):
            watched = self._children if isinstance(operation, GetChildren) else self._data
            _watch(watched, operation.path, connection)
        return outcome

    def fire(self, fired: Fired) -> tuple[int, ...]:
        """Return the connections to be told, which do not watch for it any more."""
        what, path = fired
        if what is WatchType.CHILDREN:
            return tuple(self._children.pop(path, ()))
        found = self._data.pop(path, {})
        if what is WatchType.DELETED:
            found |= self._children.pop(path, {})
        return tuple(found)

    def set_again(self, asked: SetWatches, connection: int, tree: DataTree) -> list[Fired]:
        """Set a client's watches; return what they have missed (`DataTree.setWatches`)."""
        missed: list[Fired] = []
        for path in asked.data:
            znode = tree.znodes.get(path)
            if znode is None:
                missed.append((WatchType.DELETED, path))
            elif znode.mzxid > asked.zxid:
                missed.append((WatchType.CHANGED, path))
            else:
                _watch(self._data, path, connection)
        for path in asked.exists:
            if path in tree.znodes:
                missed.append((WatchType.CREATED, path))
            else:
                _watch(self._data, path, connection)
        for path in asked.children:
            znode = tree.znodes.get(path)
            if znode is None:
                missed.append((WatchType.DELETED, path))
            elif znode.pzxid > asked.zxid:
                missed.append((WatchType.CHILDREN, path))
            else:
                _watch(self._children, path, connection)
        return missed

    def forget(self, connection: int) -> None:
        """A connection is over."""
        for by_path in (self._data, self._children):
            for path in [path for path, found in by_path.items() if connection in found]:
                del by_path[path][connection]
                if not by_path[path]:
                    del by_path[path]


def _watch(by_path: _ByPath, path: str, connection: int) -> None:
    by_path.setdefault(path, {})[connection] = None
