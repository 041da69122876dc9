"""Every option says what it is, in a sentence of its own."""

import re
from collections.abc import Iterator

import click
import pytest

from fencepost.harness.cli.main import cli

_SENTENCE = re.compile(r"[A-Z][^[]+[.)]")

_HEADLESS = {"Of", "On", "So", "To", "Are", "Where", "How", "What"}
"""Words with which a clause begins that says nothing without its option's name."""


def _options(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """Yield (command and option, its words without the default)."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            one = command.get_command(context, name)
            assert one is not None
            yield from _options(one, f"{path} {name}")
    for one in command.params:
        if isinstance(one, click.Option):
            yield f"{path} {one.opts[0]}", (one.help or "").partition("[default")[0].strip()


@pytest.mark.parametrize(("option", "words"), list(_options(cli, "fencepost")))
def test_an_option_says_what_it_is(option: str, words: str) -> None:
    assert _SENTENCE.fullmatch(words), f"{option}: {words!r}"
    assert words.split(maxsplit=1)[0] not in _HEADLESS, f"{option}: {words!r}"
