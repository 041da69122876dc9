"""What the kernels say of a history in the tests' small language."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
from histories import History, history

from fencepost.checkers.anomaly import Anomaly, Found, anomalies_of
from fencepost.checkers.catalogue import KEY_CHECKS
from fencepost.checkers.data_plane.key_assumptions import KEY_ASSUMPTIONS
from fencepost.checkers.data_plane.key_log import KeyLog, key_log
from fencepost.checkers.grounds.history_summary import HistorySummary, history_summary
from fencepost.checkers.grounds.operations import FaultWindow, summary_of_operations
from fencepost.checkers.setting import Setting
from fencepost.history.manifest import Readers

Values = dict[str, list[tuple[int, ...]]]

_CHECKS = KEY_CHECKS | KEY_ASSUMPTIONS


def never(
    text: str | History,
    *,
    idempotent: bool = True,
    consume: str = "assign",
    readers: tuple[Readers, ...] = (),
) -> Values:
    """The anomalies that are never allowed: check → what was compared (values, of all keys)."""
    found = _anomalies(text, idempotent=idempotent, consume=consume, readers=readers)
    return _values(anomaly for anomaly in found if not anomaly.allowed)


def allowed(text: str | History, *, idempotent: bool = True, consume: str = "assign") -> Values:
    """The anomalies that are reported and legal: check → values."""
    found = _anomalies(text, idempotent=idempotent, consume=consume)
    return _values(anomaly for anomaly in found if anomaly.allowed)


def doubts(text: str | History, *, consume: str = "assign") -> set[str]:
    """The checks that cannot call some key valid."""
    logs = _logs(text, idempotent=True, consume=consume)
    return {name for name, check in _CHECKS.items() for log in logs if check.kernel(log).doubt}


def found_in(
    past: History,
    checks: Iterable[str],
    *,
    idempotent: bool = True,
    consume: str = "assign",
    readers: Sequence[Readers] = (),
) -> list[Found]:
    """What these checks find, key by key."""
    logs = _logs(past, idempotent=idempotent, consume=consume, readers=readers)
    return [_CHECKS[name].kernel(log) for name in checks for log in logs]


def log_of(text: str, *, key: str = "t-0", idempotent: bool = True) -> KeyLog:
    """The key log of one key."""
    logs = _logs(text, idempotent=idempotent, consume="assign")
    return next(log for log in logs if log.key == key)


def summary(
    operations: pa.Table, *, windows: Sequence[FaultWindow] = (), parts: int = 1
) -> HistorySummary:
    """The summary of operations, as if they lay in `parts` files."""
    size = -(-len(operations) // parts)
    rows = [
        summary_of_operations(f"part-{part}", operations.slice(part * size, size), windows=windows)
        for part in range(parts)
    ]
    return history_summary(pa.concat_tables(rows))


def setting_of(
    past: History,
    *,
    idempotent: bool = True,
    consume: str = "assign",
    readers: Sequence[Readers] = (),
) -> Setting:
    """What the operations of a history say beside its records."""
    sums = summary(past.operations)
    return Setting(
        idempotent=idempotent,
        consume=consume,
        final_reads=sums.final_reads,
        info_polls=sums.info_polls,
        readers=tuple(readers),
    )


def _anomalies(
    text: str | History, *, idempotent: bool, consume: str, readers: Sequence[Readers] = ()
) -> list[Anomaly]:
    logs = _logs(text, idempotent=idempotent, consume=consume, readers=readers)
    tables = [check.kernel(log).table for check in _CHECKS.values() for log in logs]
    return [anomaly for table in tables for anomaly in anomalies_of(table)]


def _values(anomalies: Iterable[Anomaly]) -> Values:
    values: Values = {}
    for anomaly in anomalies:
        values.setdefault(anomaly.check, []).append(anomaly.values)
    return values


def _logs(
    text: str | History, *, idempotent: bool, consume: str, readers: Sequence[Readers] = ()
) -> list[KeyLog]:
    past = history(text) if isinstance(text, str) else text
    setting = setting_of(past, idempotent=idempotent, consume=consume, readers=readers)
    keys = sorted(set(past.records.column("key").to_pylist()))
    keys += sorted({read.key for read in setting.final_reads} - set(keys))
    return [key_log(key, past.of_key(key), setting) for key in keys]
