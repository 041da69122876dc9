"""The notebook of the documentation runs from top to bottom."""

import json
from pathlib import Path

import pytest

from fencepost.history.operation import Outcome

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


@pytest.mark.spark
def test_every_cell_of_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((EXAMPLES / "look-at-a-run.ipynb").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        # What shows a plot needs the notebook's own page.
        if cell["cell_type"] == "code" and "output_notebook" not in source:
            exec(compile(source, cell["id"], "exec"), names)  # the documentation's own code
    run = names["run"]
    assert run.is_valid  # type: ignore[attr-defined]
    assert set(names["operations"].outcome) <= set(Outcome)  # type: ignore[attr-defined]
    assert {one.name for one in run.plot.latency().renderers}  # type: ignore[attr-defined]
    assert len(names["wire"]) > 0  # type: ignore[arg-type]
