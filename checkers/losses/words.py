"""A loss in one sentence."""

from collections.abc import Iterator
from typing import Final

from checkers.losses.forensics import EarlyRead, Election, Join, Loss, Truncation, ValueFate
from checkers.ranges import range_text

__all__ = ["sentence_of"]

_NS_A_SECOND: Final = 1_000_000_000


def sentence_of(loss: Loss) -> str:
    """Return what happened in one sentence, as far as it is known."""
    parts = [_acknowledged(loss), *map(_read, loss.early_reads)]
    parts += [
        f"{_broker(one)} lost its disk ({one.fault})" for one in loss.truncations if one.fault
    ]
    if loss.join is not None:
        parts.append(_joined(loss.join))
    if loss.election is not None:
        parts.append(_elected(loss.election))
    cuts = [_cut(loss, to_offset) for to_offset in _ends(loss)]
    parts.append(", and ".join(filter(None, [_listed(cuts), _fate(loss)])))
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _acknowledged(loss: Loss) -> str:
    what = f"{loss.count} records of {loss.key}"
    if loss.first_offset is not None and loss.last_offset is not None:
        where = range_text(loss.first_offset, loss.last_offset)
        whole = loss.last_offset - loss.first_offset + 1 == loss.count
        what = (
            f"{where} of {loss.key}" if whole else f"{loss.count} records at {where} of {loss.key}"
        )
    if not loss.acknowledgements:
        return f"{what}, sent and not acknowledged by anybody known"
    leaders = _listed(f"broker {one.leader}" for one in loss.acknowledgements)
    epochs = [str(one.leader_epoch) for one in loss.acknowledgements]
    isrs = _listed((_ids(one.isr) for one in loss.acknowledgements), last=", then ")
    plural = "s" if len(set(epochs)) > 1 else ""
    return (
        f"{leaders} acknowledged {what} in leader epoch{plural} {_listed(epochs)} with ISR {isrs}"
    )


def _read(early: EarlyRead) -> str:
    return (
        f"consumers had read {early.count} of them while the ISR was {_ids(early.isr)}, and "
        f"min.insync.replicas is {early.min_isr}"
    )


def _joined(join: Join) -> str:
    by = "" if join.frame is None else f" by AlterPartition frame {join.frame}"
    text = f"broker {join.broker_id} joined the ISR at metadata offset {join.metadata_offset}{by}"
    if join.stale and join.sent_ns is not None and join.registered_ns is not None:
        early_s = (join.registered_ns - join.sent_ns) / _NS_A_SECOND
        when = f"{abs(early_s):.1f} s {'before' if early_s >= 0 else 'after'}"
        text += f", sent {when} its new registration (offset {join.registration_offset})"
    return text


def _elected(election: Election) -> str:
    how = "uncleanly " if election.unclean else ""
    return (
        f"broker {election.leader} was {how}elected at metadata offset {election.metadata_offset} "
        f"with log end {election.log_end_offset}"
    )


def _ends(loss: Loss) -> list[int]:
    """Return the distinct offsets that logs were truncated to."""
    return sorted({one.to_offset for one in loss.truncations if one.to_offset is not None})


def _cut(loss: Loss, to_offset: int) -> str:
    who = [_broker(one) for one in loss.truncations if one.to_offset == to_offset]
    return f"{_listed(who)} truncated to {to_offset}"


def _broker(truncation: Truncation) -> str:
    return f"broker {truncation.node.rpartition('-')[2]}"


def _fate(loss: Loss) -> str:
    holders = _listed(one.node for one in loss.replicas if one.held_count)
    match loss.fate:
        case ValueFate.LOST:
            return "no replica holds them any more"
        case ValueFate.UNREACHABLE:
            return f"only {holders} still holds them, outside the leader's log"
        case ValueFate.UNREAD:
            return f"they are in the leader's log ({holders}), and no read returned them"
        case ValueFate.UNCERTAIN:
            return "no disk that could be read holds them"


def _listed(words: Iterator[str] | list[str], *, last: str = " and ") -> str:
    kept = list(dict.fromkeys(words))
    return last.join(filter(None, [", ".join(kept[:-1]), kept[-1] if kept else ""]))


def _ids(ids: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, ids))}]"
