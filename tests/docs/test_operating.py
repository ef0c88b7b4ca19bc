"""docs/operating.md names each command of the operator, and no other."""

import re

import click

from infra.operator.admin import admin
from tests.docs.samples import DOCS

PAGE = (DOCS / "operating.md").read_text()


def test_the_page_names_each_command_and_no_other() -> None:
    table = re.search(r"^\| command \|.*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
    assert table is not None
    cells = re.findall(r"^\| (`.*?) \|", table[0], re.MULTILINE)
    named = [name for cell in cells for name in re.findall(r"`([\w-]+)`", cell)]
    assert sorted(named) == admin.list_commands(click.Context(admin))
