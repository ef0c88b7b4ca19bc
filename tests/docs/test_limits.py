"""The tables of docs/limits.md have what the code declares, and every limit of visitors."""

import re

from chalicelib.core.operations import load_all
from chalicelib.core.scopes import Scope
from infra.local import limits_page
from infra.local.limits_page import NOT_OF_VISITORS, OF_VISITORS

load_all()
STALE = "docs/limits.md is stale: run make update, and look at what has changed."


def test_the_tables_are_as_declared() -> None:
    text = limits_page.DOCUMENT.read_text()
    assert text == limits_page.markdown(text), STALE


def test_each_limit_is_in_the_table_of_visitors_or_has_a_reason() -> None:
    names = limits_page.declared().keys()
    missing = names - OF_VISITORS.keys() - NOT_OF_VISITORS.keys()
    assert missing == set(), (
        "Add each limit to OF_VISITORS in infra/local/limits_page.py, or to NOT_OF_VISITORS with "
        "the reason, then run make update."
    )
    unknown = (OF_VISITORS.keys() | NOT_OF_VISITORS.keys()) - names
    assert unknown == set(), "Remove these names from infra/local/limits_page.py."
    assert OF_VISITORS.keys() & NOT_OF_VISITORS.keys() == set()


def test_each_scope_is_in_its_table() -> None:
    text = limits_page.DOCUMENT.read_text()
    assert {*re.findall(r"`([a-z]+:(?:read|write))`", text)} == {scope.value for scope in Scope}
