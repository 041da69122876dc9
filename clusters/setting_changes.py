"""The properties that nodes were given on the way, in the order of the changes."""

from collections.abc import Mapping, Sequence

from fencepost.clusters.port import NodeName

SettingChange = tuple[int, NodeName, Mapping[str, str]]
"""(time in ns, node, the properties that it was given)."""


class SettingChanges:
    """The changes of one cluster's nodes."""

    def __init__(self) -> None:
        self._made: list[SettingChange] = []

    @property
    def made(self) -> Sequence[SettingChange]:
        """The changes so far."""
        return tuple(self._made)

    def over(self, settings: Mapping[str, str], node: NodeName) -> Mapping[str, str]:
        """Return the node's first settings with all that it was given since laid over them."""
        now = dict(settings)
        for _, changed, given in self._made:
            now |= given if changed == node else {}
        return now

    def note(self, now_ns: int, node: NodeName, settings: Mapping[str, str]) -> str:
        """Note that a node is given these; return the evidence in words."""
        self._made.append((now_ns, node, dict(settings)))
        stated = ", ".join(f"{name}={value}" for name, value in settings.items())
        return f"{node}: its properties have {stated} from its next start on"
