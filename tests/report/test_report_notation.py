import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.report.notation import (
    counted,
    figure,
    integer,
    length,
    listed,
    moment,
    one_line,
    printable,
    shortened,
    size,
    utc,
)


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (0, "0 s"),
        (999, "999 ns"),
        (340_000, "340 µs"),
        (3_420_000, "3.42 ms"),
        (17_000_000_000, "17.0 s"),
        (99_960_000_000, "1 min 40 s"),
        (125_000_000_000, "2 min 05 s"),
        (3_599_600_000_000, "1 h 00 min"),
        (10_800_000_000_000, "3 h 00 min"),
        (-1_500_000, "-1.50 ms"),
    ],
)
def test_a_length_takes_the_unit_that_leaves_three_digits(duration_ns: int, text: str) -> None:
    assert length(duration_ns) == text


@given(st.integers(0, 10**17))
@example(999_500_000)
@example(1000)
def test_no_length_rounds_up_into_a_sixtieth_second_or_minute(duration_ns: int) -> None:
    written = length(duration_ns)
    assert not written.endswith((" 60 s", " 60 min"))
    assert not written.startswith(("1000", "60.0 min"))


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("lag_p99_ms", 12.34, ("lag p99", "12.3 ms")),
        ("took_s", 61.0, ("took", "61.0 s")),
        ("rss_bytes", 3 * 1024 * 1024, ("rss", "3.0 MiB")),
        ("keys_count", 12345.0, ("keys", "12,345")),
        ("loss_fraction", 0.125, ("loss", "12.5 %")),
        ("sends", 7.0, ("sends", "7")),
        ("ratio", 0.12345, ("ratio", "0.1235")),
        ("lag_ms", float("nan"), ("lag", "none")),
    ],
)
def test_a_figure_is_written_in_the_unit_of_its_suffix(
    name: str, value: float, written: tuple[str, str]
) -> None:
    assert figure(name, value) == written


def test_counts_have_thousands_separators_and_plurals() -> None:
    assert integer(1234567) == "1,234,567"
    assert counted(1, "fault") == "1 fault"
    assert counted(1200, "fault") == "1,200 faults"
    assert counted(2, "reply", plural="replies") == "2 replies"


def test_times_of_a_run_are_seconds_with_milliseconds() -> None:
    assert moment(1_012_345_600_000) == "1,012.346 s"


def test_a_start_is_written_in_utc() -> None:
    assert utc("2026-03-01T10:00:00+02:00") == "2026-03-01 08:00:00 UTC"
    assert utc("2026-03-01T08:00:00Z") == "2026-03-01 08:00:00 UTC"
    assert utc("yesterday") == "yesterday"


def test_sizes_are_binary() -> None:
    assert [size(n) for n in (0, 1023, 1536, 5 << 40)] == ["0 B", "1023 B", "1.5 KiB", "5.0 TiB"]


def test_many_numbers_are_cut_short_and_counted() -> None:
    assert listed((5, 6)) == "5, 6"
    assert listed(range(1010)) == "0, 1, 2, 3, 4, 5, 6, 7 and 1,002 more"


@given(st.text())
def test_printable_text_has_nothing_that_acts(text: str) -> None:
    shown = printable(text)
    assert len(shown) == len(text)
    assert not [c for c in shown if (ord(c) < 32 and c not in "\t\n") or 127 <= ord(c) < 160]
    shown.encode()


def test_printable_text_stops_escapes_and_overrides() -> None:
    assert printable("a\x1b[31mb\u202ec\ud800") == "a�[31mb�c�"


def test_one_line_stays_one() -> None:
    assert one_line("refused:\n  VALID\t!\r\n") == "refused: VALID !"


def test_shortened_text_says_that_it_was_cut() -> None:
    assert shortened("abcdef", length_max=4) == "abc…"
    assert shortened("abcd", length_max=4) == "abcd"
