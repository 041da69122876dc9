"""Packets of a ZooKeeper quorum in a sequence picture: each an arrow of its own, with its zxid."""

from typing import Any

from fencepost.report.arrows import ArrowFate, arrows_of
from fencepost.report.frames import ShownFrame

MS = 1_000_000
NEXT = iter(range(100))


def packet(api: str, *, at_ms: int, until_ms: int | None = None, **said: Any) -> ShownFrame:
    """A packet on the connection that server-1 dialled."""
    return ShownFrame(
        number=next(NEXT),
        connection=5,
        correlation_id=said.get("zxid", 0),
        source="server-1",
        target="server-3",
        is_request=api in ("FOLLOWERINFO", "ACK"),
        time_ns=at_ms * MS,
        forwarded_ns=(at_ms if until_ms is None else until_ms) * MS,
        action="forwarded" if until_ms is None else "released",
        rule=None if until_ms is None else "commits",
        api=api,
        api_version=-1,
        items=({"api": api, **said},),
        item_count=1,
        errors=(),
    )


def test_no_packet_is_taken_for_the_answer_to_another() -> None:
    drawn = arrows_of([packet("FOLLOWERINFO", at_ms=1), packet("LEADERINFO", at_ms=2)])
    assert [(one.api, one.sender, one.is_answer, one.answer) for one in drawn] == [
        ("FOLLOWERINFO", "server-1", False, None),
        ("LEADERINFO", "server-3", False, None),
    ]


def test_a_held_commit_names_its_transaction_and_arrives_late() -> None:
    proposed = packet("PROPOSAL", at_ms=1, path="/a", zxid=0x100000002)
    [asked, kept] = arrows_of([proposed, packet("COMMIT", at_ms=2, until_ms=900, zxid=0x100000002)])
    assert asked.words == "PROPOSAL /a zxid 0x100000002"
    assert (kept.words, kept.fate) == ("COMMIT zxid 0x100000002", ArrowFate.LATE)
    assert kept.details[0] == "COMMIT server-3 → server-1"
