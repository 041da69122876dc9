"""The documents: what they link to is there, and what they tell a reader to type is a command."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from fencepost.harness.cli.main import cli, main
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.harness.scenario.sources import library

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
MANUALS = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
README_LINES_MAX = 150


def each_of(pages: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", pages, ids=lambda page: str(page.relative_to(ROOT)))


@each_of(PAGES)
def test_every_link_leads_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)", prose)
    local = [link.partition("#") for link in links if not link.startswith("http")]
    for name, _, anchor in local:
        target = page.parent / name if name else page
        assert target.exists(), name
        assert not anchor or anchor in anchors(target), f"{name}#{anchor}"


@each_of(MANUALS)
def test_every_command_is_one(page: Path) -> None:
    for command in commands(page.read_text()):
        parse(shlex.split(command)[1:])


@each_of(MANUALS)
def test_every_run_that_a_page_shows_can_be_planned(
    page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As far as `--dry-run` goes, of scenarios that are there, on hosts that are everywhere."""
    for command in commands(page.read_text()):
        _, what, name, *flags = shlex.split(command)
        if what == "run" and name in library() and "--host" not in flags:
            with pytest.raises(SystemExit) as ended:
                main(["run", name, *flags, "--dry-run", "--results", str(tmp_path)])
            assert ended.value.code == 0, (command, capsys.readouterr().err)


def test_the_index_lists_every_page_once() -> None:
    index = (ROOT / "docs/README.md").read_text()
    listed = re.findall(r"^\| \[[^\]]*\]\(([^)]+)\) \|", index, re.MULTILINE)
    pages = [f"docs/{page.name}" for page in ROOT.glob("docs/*.md") if page.name != "README.md"]
    folders = [f"docs/{page.parent.name}/README.md" for page in ROOT.glob("docs/*/README.md")]
    others = ["ARCHITECTURE.md", "GLOSSARY.md"]
    found = sorted(str((ROOT / "docs" / name).resolve().relative_to(ROOT)) for name in listed)
    assert found == sorted([*pages, *folders, *others])


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES_MAX


def test_the_scenario_of_the_readme_is_one(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    path = tmp_path / "shown.yaml"
    path.write_text(shown)
    assert load_scenario(path, []).require.judged


def anchors(page: Path) -> set[str]:
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    kept = [re.sub(r"[^\w\- ]", "", title.lower()) for title in titles]
    return {title.replace(" ", "-") for title in kept}


def commands(text: str) -> Iterator[str]:
    """Those with arguments, without the ones that have a placeholder."""
    for found in re.findall(
        r"(?:`|^\$ |^    )(?:sudo )?(fencepost [a-z-]+ [^`\n]+)", text, re.MULTILINE
    ):
        if not re.search(r"[…|()]|\b[A-Z]+\b(?!-)", found):
            yield found.partition(" > ")[0]


def parse(arguments: list[str]) -> None:
    """Refuse what the command line would refuse, and do nothing."""
    command: click.Command = cli
    while isinstance(command, click.Group):
        name, *arguments = arguments
        found = command.get_command(click.Context(command), name)
        assert found is not None, name
        command = found
    if arguments:  # without any it is only named
        command.make_context(command.name, arguments)
