"""The clients of a run as a nemesis sees them: by name, to be paused, resumed and crashed."""

import random
import re
from dataclasses import dataclass
from typing import Final, Protocol

from fencepost.history.failure import HarnessError, SpecError

_FORM: Final = re.compile(r"(one|all) (producer|consumer)s?|((?:producer|consumer)-\d+)")


class ControlsClients(Protocol):
    """Client processes. Each deed returns its evidence, or raises HarnessError."""

    def named(self, role: str) -> tuple[str, ...]:
        """Return the clients of a role, in the order of their starts."""

    def pause(self, name: str) -> str:
        """Stop every thread of the process."""

    def resume(self, name: str) -> str:
        """Let the process go on."""

    def crash(self, name: str) -> str:
        """Kill the process with whatever it has open, and start a new one in its place."""

    def come_back(self, name: str) -> str:
        """Wait until the new process has done something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientChoice:
    """Clients as a play names them: `producer-0`, `one consumer`, `all producers`."""

    text: str

    def resolve(self, clients: ControlsClients, draw: random.Random) -> tuple[str, ...]:
        """Name the clients; raise HarnessError if the run has none of the role."""
        share, _, role = self.text.partition(" ")
        if not role:
            return (self.text,)
        names = clients.named(role.removesuffix("s"))
        if not names:
            raise HarnessError(f"this run has no {role.removesuffix('s')}")
        return names if share == "all" else (draw.choice(names),)

    def covers(self, name: str) -> bool:
        """Return whether the choice may resolve to this client."""
        return self.may_be(ClientChoice(text=name))

    def may_be(self, other: "ClientChoice") -> bool:
        """Return whether both choices may resolve to the same client."""
        if self.names_one and other.names_one:
            return self == other
        return self.role == other.role

    @property
    def names_one(self) -> bool:
        """Return whether it is the name of a client and not a share of a role."""
        return " " not in self.text

    @property
    def role(self) -> str:
        """The role of the clients: producer or consumer."""
        return self.text.rpartition(" ")[2].partition("-")[0].removesuffix("s")


def parse_clients(value: object) -> ClientChoice:
    """Read an operand; raise SpecError if no client can be meant."""
    if not isinstance(value, str) or not _FORM.fullmatch(value):
        raise SpecError(
            (), f"expected producer-0, 'one consumer' or 'all producers', found {value!r}"
        )
    return ClientChoice(text=value)
