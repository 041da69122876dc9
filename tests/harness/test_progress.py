"""The live line of a terminal is one line; a log keeps what is worth a line, and nothing else."""

import io

import pytest
from rich.console import Console

from fencepost.harness.progress import Status, TerminalProgress

WIDTH = 60
LONG = "checking [in ISR] " + "x" * 200
STATUS = Status(
    now_s=1.0,
    limit_s=60.0,
    ok_per_s=1234.0,
    ok_count=10**9,
    fail_count=10**6,
    info_count=10**6,
    polled_count=10**9,
    broken=("kill broker-1", "cut broker-2 broker-3", "pause broker-1"),
)


def on_a_terminal() -> tuple[TerminalProgress, Console]:
    console = Console(file=io.StringIO(), force_terminal=True, width=WIDTH)
    return TerminalProgress(console, console.status("…")), console


@pytest.mark.parametrize("of_a_run", [False, True])
def test_a_live_line_is_no_wider_than_the_terminal_and_says_what_it_was_given(
    *, of_a_run: bool
) -> None:
    progress, console = on_a_terminal()
    spinner = progress._spinner
    assert spinner is not None
    shown = progress.of_run("run 3 of 20") if of_a_run else progress
    for told in (LONG, STATUS):
        if isinstance(told, str):
            shown.live(told)
        else:
            shown.show(told)
        lines = console.render_lines(spinner.renderable, pad=False)
        assert len(lines) == 1
        assert sum(part.cell_length for part in lines[0]) <= WIDTH
    shown.live(LONG)
    (line,) = console.render_lines(spinner.renderable, pad=False)
    assert "[in ISR]" in "".join(part.text for part in line)


def test_a_log_keeps_no_live_line() -> None:
    file = io.StringIO()
    progress = TerminalProgress(Console(file=file, width=WIDTH), None)
    progress.live("checking on Spark: 1 of 4 tasks of this pass")
    assert not file.getvalue()
    progress.say("checking on Spark")
    assert file.getvalue().count("\n") == 1
