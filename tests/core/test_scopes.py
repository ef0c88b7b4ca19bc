"""Scopes that are granted to keys, and patterns of scopes."""

import pytest

from chalicelib.core.scopes import Scope, expand, parse_grants


def test_grants_have_a_fixed_order_and_no_repeats() -> None:
    assert parse_grants(["pages:write", "*:read", "pages:write"]) == ["*:read", "pages:write"]
    assert parse_grants([" pages:write ", ""]) == ["pages:write"]


@pytest.mark.parametrize("grants", [["nonsense"], ["*:read", "*:delete"], []])
def test_unknown_names_and_no_names_are_refused(grants: list[str]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_grants(grants)


def test_a_pattern_stands_for_the_scopes_of_all_areas() -> None:
    reads = expand(("*:read",))
    assert reads == {scope for scope in Scope if scope.value.endswith(":read")}
    assert expand(("*:write", "*:read")) == frozenset(Scope)


def test_a_scope_stands_for_itself() -> None:
    assert expand(("pages:write",)) == {Scope.PAGES_WRITE}
