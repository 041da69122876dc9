"""The page of an open history, which has no clients of Kafka."""

from pathlib import Path

from fencepost.harness.histories.synthetic import SyntheticHistory, synthetic_run
from fencepost.report.junit import write_junit
from fencepost.report.page import write_page
from fencepost.report.reading import read_run


def test_a_history_without_clients_has_a_page_without_troubles(tmp_path: Path) -> None:
    spec = SyntheticHistory(
        model="register",
        operations=50,
        keys=2,
        clients=3,
        crash_rate=0.1,
        fail_rate=0.1,
        planted=("stale-read",),
        seed=1,
        name="open",
        command="fencepost history generate",
    )
    run = synthetic_run(spec, results=tmp_path)
    assert read_run(run).troubles == ()
    assert "A made-up history of a register" in write_page(run).read_text()
    assert "not checked" in write_junit(run).read_text().lower()
