"""docs/add-a-fault.md: its examples are the verb that it says they are."""

from examples import ROOT, examples_of


def test_the_examples_of_the_page_stand_in_the_file_of_their_verb() -> None:
    source = (ROOT / "nemesis/verbs/pause.py").read_text()
    step, deed = examples_of("add-a-fault.md")
    assert step.startswith("@dataclass")
    assert deed.startswith("def _pause")
    for example in (step, deed):
        assert f"\n\n{example}\n\n" in source
