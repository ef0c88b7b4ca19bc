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


def test_a_pattern_stands_for_the_scopes_of_the_nine_areas() -> None:
    areas = {scope.area for scope in expand(("*:read",))}
    assert areas == {scope.area for scope in expand(("*:write",))}
    assert len(areas) == 9
    assert expand(("*:write", "*:read")) == {scope for scope in Scope if not scope.by_name}


def test_webhooks_and_settings_are_granted_by_name_only() -> None:
    assert {scope.area for scope in Scope if scope.by_name} == {"webhooks", "settings"}
    assert expand(("*:read", "webhooks:write")) >= {Scope.WEBHOOKS_WRITE, Scope.CRM_READ}


def test_a_scope_stands_for_itself() -> None:
    assert expand(("pages:write",)) == {Scope.PAGES_WRITE}
