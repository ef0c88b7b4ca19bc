"""Names under which callers are counted, recorded and logged."""

import pytest

from chalicelib.core.principals import (
    ApiKeyPrincipal,
    OAuthPrincipal,
    OperatorPrincipal,
    Principal,
    SessionPrincipal,
    VisitorPrincipal,
)


@pytest.mark.parametrize(
    ("caller", "counted_as", "recorded", "logged"),
    [
        (
            ApiKeyPrincipal(workspace_id="w", account_id="a", key_id="k"),
            *("key:k", "a", {"workspaceId": "w", "keyId": "k"}),
        ),
        (
            OAuthPrincipal(workspace_id="w", account_id="a", key_id="c"),
            *("key:c", "a", {"workspaceId": "w", "keyId": "c"}),
        ),
        (
            SessionPrincipal(workspace_id="w", account_id="a"),
            *("account:a", "a", {"workspaceId": "w"}),
        ),
        (VisitorPrincipal(workspace_id="w", visitor="v"), "visitor:v", "visitor:v", {}),
        (OperatorPrincipal(workspace_id="w"), "operator", "operator", {"workspaceId": "w"}),
    ],
)
def test_a_caller_is_counted_recorded_and_logged_under_names_of_its_own(
    caller: Principal, counted_as: str, recorded: str, logged: dict[str, str]
) -> None:
    assert caller.rate_limit_key == counted_as
    assert caller.audit_actor == recorded
    assert caller.log_fields == logged
