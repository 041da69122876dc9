"""Seeds: every stream of draws is a function of the run's seed and its own name."""

from fencepost.harness.seeds import stream, stream_seed


def test_a_stream_is_the_same_on_every_machine_and_independent_of_the_others() -> None:
    assert stream_seed(7, "nemesis") == 1_832_843_859
    assert stream(7, "mix").random() == stream(7, "mix").random()
    assert stream(7, "mix").random() != stream(7, "nemesis").random()
    assert stream(7, "mix").random() != stream(8, "mix").random()
