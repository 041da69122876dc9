from synthetic_run import SECOND, Fault, faults_table

from fencepost.report.faults import faults_open, lanes_of, spans_of

END_NS = 40 * SECOND


def spans(*faults: Fault):  # noqa: ANN201  # a tuple of FaultSpan
    return spans_of(faults_table(faults))


def kill(*targets: str, begin: float, end: float | None) -> Fault:
    return Fault(kind="kill", targets=targets, begin=begin, effect=begin, end=end)


def test_a_fault_stands_on_the_lane_of_each_of_its_targets() -> None:
    lanes = lanes_of(spans(kill("broker-1", "broker-2", begin=1, end=2)), run_end_ns=END_NS)
    assert [lane.target for lane in lanes] == ["broker-1", "broker-2"]


def test_lanes_stand_in_the_order_of_roles_and_numbers() -> None:
    names = ("producer-0", "broker-10", "broker-9", "controller-1")
    found = lanes_of(spans(kill(*names, begin=1, end=2)), run_end_ns=END_NS)
    assert [lane.target for lane in found] == [
        "controller-1",
        "broker-9",
        "broker-10",
        "producer-0",
    ]


def test_faults_that_overlap_on_a_lane_get_rows_of_their_own() -> None:
    found = lanes_of(
        spans(
            kill("broker-1", begin=1, end=5),
            kill("broker-1", begin=2, end=3),
            kill("broker-1", begin=6, end=7),
        ),
        run_end_ns=END_NS,
    )
    assert [(lane.span.index, lane.row, lane.rows) for lane in found] == [
        (0, 0, 2),
        (1, 1, 2),
        (2, 0, 2),
    ]


def test_a_fault_without_targets_is_one_of_the_run() -> None:
    assert [lane.target for lane in lanes_of(spans(kill(begin=1, end=2)), run_end_ns=9)] == ["run"]


def test_a_fault_that_never_healed_is_open_to_the_end() -> None:
    found = spans(kill("broker-1", begin=1, end=None), kill("broker-2", begin=1, end=2))
    still = faults_open(found, from_ns=30 * SECOND, to_ns=31 * SECOND, run_end_ns=END_NS)
    assert [span.label for span in still] == ["kill broker-1"]


def test_a_fault_is_open_at_its_very_begin_and_end() -> None:
    found = spans(kill("broker-1", begin=1, end=2))
    for at in (1, 2):
        assert faults_open(found, from_ns=at * SECOND, to_ns=at * SECOND, run_end_ns=END_NS)
    assert not faults_open(found, from_ns=2 * SECOND + 1, to_ns=END_NS, run_end_ns=END_NS)
