"""The documents' commands of ``python -m infra`` exist, with the options that they are given."""

import re
import shlex
from collections.abc import Iterator

import click

from infra.deploy import check_commands, commands
from infra.operator.admin import admin
from infra.operator.registry_entry import server_json
from tests.docs.samples import DOCS, ROOT
from tests.support.sweep import sweep

PAGES = (
    *(ROOT / name for name in ("README.md", "SECURITY.md")),
    *sorted(page for page in DOCS.glob("*.md") if page.name != "reference.md"),
)
CODE = re.compile(r"^ *```(?:sh|console)?\n(.*?)^ *```|`([^`]+)`", re.MULTILINE | re.DOTALL)
CALL = re.compile(r"(?:python -m )?\binfra (?=[a-z])|^(?=(?:admin|deploy|destroy|rollback) )")
TOP = {command.name: command for command in (*commands.COMMANDS, *check_commands.COMMANDS)}
TOP |= {"admin": admin, "server-json": server_json}


def calls() -> Iterator[tuple[str, str]]:
    """Yield each command in the documents, with its page."""
    for page in PAGES:
        for block, span in CODE.findall(page.read_text()):
            for line in (block or span).replace("\\\n", " ").replace("\n", " \n").splitlines():
                begin = CALL.search(line.strip())
                if begin and not line.strip()[begin.end() :].startswith(("seed", "package", "dev")):
                    yield page.name, line.strip()[begin.end() :]


CALLS = sorted({*calls()})


def words(text: str) -> list[str]:
    try:
        return shlex.split(re.split(r" [|>#]|…", text)[0])
    except ValueError:  # A span ends within a quoted text.
        return text.split()


@sweep(("page", "text"), CALLS)
def test_a_command_exists_with_its_options(page: str, text: str) -> None:
    name, *rest = words(text)
    command = TOP.get(name)
    assert command is not None, f"{page}: {text}"
    known = options_of(command)
    while isinstance(command, click.Group) and rest:
        word = rest.pop(0)
        if word.startswith("-"):
            assert word in known, f"{page}: {text}"
            if "=" not in word and rest:
                rest.pop(0)
            continue
        command = command.get_command(click.Context(command), word)
        assert command is not None, f"{page}: {text} has no {word}"
        known = options_of(command)
    used = {word.partition("=")[0] for word in rest if word.startswith("--")}
    assert used <= known, f"{page}: {text}"


def options_of(command: click.Command) -> set[str]:
    options = (p for p in command.params if isinstance(p, click.Option))
    return {name for option in options for name in (*option.opts, *option.secondary_opts)}


def test_many_commands_are_found() -> None:
    assert len(CALLS) > 50
