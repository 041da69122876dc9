"""The frames that stand for messages of a simulated cluster, decoded already."""

from collections.abc import Sequence
from typing import Any, Final

from clusters.reference.nodes.messages.data import FetchRequest
from clusters.simulation.host import Link
from nemesis.simulated.columns import APIS, parts_of, version_of
from nemesis.wire.apis import API_KEYS, FETCH, TAPED
from nemesis.wire.decoding.entities import Decoded
from nemesis.wire.frame import Frame, TopicNames
from nemesis.wire.frames import Header
from nemesis.wire.rules import Direction
from nemesis.wire.rules import Link as WireLink

__all__ = ["TAPED_KINDS", "direction_of", "frame_of", "kinds_of"]

_KEYS: Final = {kind: API_KEYS[name] for kind, (name, _) in APIS.items()}
TAPED_KINDS: Final = frozenset(
    one
    for kind, key in _KEYS.items()
    if key in TAPED or (key == FETCH and kind != FetchRequest.kind)
    for one in (kind, kind + 1)
)
"""The kinds on the tape. Of data these are only followers' fetches that tell something new
(`Fetches`).
"""


def frame_of(
    link: Link, party: WireLink, message: Any, request: Any, *, time_ns: int, names: TopicNames
) -> Frame:
    """Return the frame of a message on its way; `request`: what it answers, or None."""
    asked = message if request is None else request
    header = Header(
        api_key=_KEYS[asked.kind],
        api_version=version_of(asked),
        correlation_id=message.correlation,
        client_id=(link.sender if request is None else link.receiver).name,
        answered=message.correlation >= 0,
    )
    frame = Frame(
        connection=link.connection,
        link=party,
        direction=direction_of(link),
        header=header,
        data=b"",
        time_ns=time_ns,
        names=names,
    )
    (columns, items), entity = parts_of(message)
    # What a frame says is decoded when it is asked for; here it is known already.
    frame.__dict__["decoded"] = Decoded(columns, tuple(items), entity)
    return frame


def direction_of(link: Link) -> Direction:
    """Return whether requests or answers go over the link."""
    return Direction.REQUEST if link.answers is None else Direction.RESPONSE


def kinds_of(api: str | None, direction: Direction) -> Sequence[int]:
    """List the kinds of messages of an API, or of all."""
    more = 0 if direction is Direction.REQUEST else 1
    return [kind + more for kind, (name, _) in APIS.items() if api is None or name == api]
