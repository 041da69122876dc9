"""A log of thousands of lines comes down to the one that says why."""

from pathlib import Path

import pytest

from fencepost.clusters.processes.logs import last_words

INFO = "2026-11-21T10:59:12.247 [main] INFO kafka.server.BrokerServer - [BrokerServer id=1] ok"
ERROR = "2026-11-21T10:59:12.249 [main] ERROR kafka.Kafka$ - Exiting Kafka due to {}"
IN_USE = "java.net.BindException: Address already in use"
TRACE = f"{IN_USE}\n\tat java.base/sun.nio.ch.Net.bind0\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            f"{INFO}\n{ERROR.format('x')}\n{TRACE}{INFO}\n",
            f"kafka.Kafka$ - Exiting Kafka due to x | {IN_USE}",
        ),
        (
            "Unrecognized VM option 'NoSuch'\nError: Could not create the Java Virtual Machine.\n",
            "Unrecognized VM option 'NoSuch' | Error: Could not create the Java Virtual Machine.",
        ),
        (
            f"{INFO}\nTerminating due to java.lang.OutOfMemoryError: Java heap space\n",
            "Terminating due to java.lang.OutOfMemoryError: Java heap space",
        ),
        (f"{INFO}\n{INFO.replace('ok', 'bye')}\n", f"{INFO} | {INFO.replace('ok', 'bye')}"),
        ("", "its log is empty"),
    ],
    ids=["logged", "refused by the JVM", "out of memory", "silent", "empty"],
)
def test_the_last_words_are_the_errors_if_there_are_any(
    tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "server.log").write_text(text)
    assert last_words(tmp_path / "server.log") == words


def test_of_many_errors_the_cause_and_the_end_are_kept(tmp_path: Path) -> None:
    lines = [ERROR.format(cause) for cause in ("first", "second", "second", "third", "last")]
    (tmp_path / "server.log").write_text("\n".join(lines))
    assert last_words(tmp_path / "server.log") == " | ".join(
        f"kafka.Kafka$ - Exiting Kafka due to {cause}" for cause in ("first", "second", "last")
    )


def test_errors_that_the_process_outlived_do_not_hide_the_fatal_one(tmp_path: Path) -> None:
    outlived = ERROR.replace("Exiting Kafka due to {}", "Error sending fetch request {}")
    fatal = ERROR.replace("Exiting Kafka due to {}", "Encountered fatal fault: no snapshot")
    lines = [*(outlived.format(number) for number in range(4)), INFO, fatal, TRACE, outlived]
    (tmp_path / "server.log").write_text("\n".join(lines))
    assert last_words(tmp_path / "server.log") == (
        f"kafka.Kafka$ - Encountered fatal fault: no snapshot | {IN_USE} | "
        "kafka.Kafka$ - Error sending fetch request {}"
    )


def test_what_was_said_before_the_latest_start_does_not_count(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(ERROR.format("the past") + "\n")
    since = log.stat().st_size
    with log.open("a") as more:
        more.write(ERROR.format("now") + "\n")
    assert last_words(log, since=since) == "kafka.Kafka$ - Exiting Kafka due to now"


def test_a_log_that_was_never_written_is_empty(tmp_path: Path) -> None:
    assert last_words(tmp_path / "server.log") == "its log is empty"
