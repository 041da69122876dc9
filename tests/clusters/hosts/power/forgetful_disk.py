"""A disk that forgets, as slow and as plain as can be: what is durable is a second copy of it all.

Changes of names and sizes wait in a list until the next sync of anything, and are then done to the
copy one by one; bytes get there when their own file is synced.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field


@dataclass
class Tree:
    """Directories, files by path, and contents by the number of the file."""

    directories: set[str] = field(default_factory=lambda: {"."})
    names: dict[str, int] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)

    def files(self) -> dict[str, bytes]:
        return {path: self.contents[number] for path, number in self.names.items()}


Change = Callable[[Tree], None]


class ForgetfulDisk:
    """`live` is what processes see."""

    def __init__(self) -> None:
        self.live = Tree()
        self.durable = Tree()
        self._waiting: list[Change] = []
        self._numbers = 0

    def lose_power(self) -> Tree:
        return self.durable

    def do(self, word: str, *rest: object) -> None:
        getattr(self, word)(*rest)

    def create(self, path: str) -> None:
        if path in self.live.names:
            self.truncate(path, 0)
            return
        self._numbers += 1
        number = self._numbers

        def change(tree: Tree) -> None:
            tree.names[path] = number
            tree.contents.setdefault(number, b"")

        self._change(change)

    def write(self, path: str, at: int, content: str) -> None:
        number = self.live.names[path]
        before = self.live.contents[number]
        data = content.encode()
        whole = before[:at].ljust(at, b"\0") + data + before[at + len(data) :]
        self.live.contents[number] = whole if data else before

    def append(self, path: str, content: str) -> None:
        self.write(path, len(self.live.contents[self.live.names[path]]), content)

    def write_synced(self, path: str, content: str) -> None:
        self.append(path, content)
        if content:
            self.sync(path)

    def sync(self, path: str) -> None:
        for change in self._waiting:
            change(self.durable)
        self._waiting.clear()
        if path in self.live.names:
            number = self.live.names[path]
            self.durable.contents[number] = self.live.contents[number]

    def truncate(self, path: str, size: int) -> None:
        number = self.live.names[path]
        before = self.live.contents[number]
        in_time = deepcopy(self.durable)
        for change in self._waiting:
            change(in_time)
        durable_size = len(in_time.contents[number])
        if size < durable_size or size > len(before) == durable_size:
            self._waiting.append(lambda tree: _cut(tree, number, size))
        self.live.contents[number] = before[:size].ljust(size, b"\0")

    def rename(self, source: str, target: str) -> None:
        if self.live.names.get(source, 0) == self.live.names.get(target):
            return

        def change(tree: Tree) -> None:
            inside = source + "/"
            moved = {path for path in tree.directories if path == source or path.startswith(inside)}
            tree.directories -= moved
            tree.directories |= {target + path.removeprefix(source) for path in moved}
            tree.names = {
                target + path.removeprefix(source)
                if path == source or path.startswith(inside)
                else path: number
                for path, number in tree.names.items()
                if path != target
            }

        self._change(change)

    def unlink(self, path: str) -> None:
        self._change(lambda tree: tree.names.__delitem__(path))

    def link(self, source: str, target: str) -> None:
        number = self.live.names[source]
        self._change(lambda tree: tree.names.__setitem__(target, number))

    def mkdir(self, path: str) -> None:
        self._change(lambda tree: tree.directories.add(path))

    def rmdir(self, path: str) -> None:
        self._change(lambda tree: tree.directories.remove(path))

    def _change(self, change: Change) -> None:
        change(self.live)
        self._waiting.append(change)


def _cut(tree: Tree, number: int, size: int) -> None:
    tree.contents[number] = tree.contents[number][:size].ljust(size, b"\0")
