"""Consent and the exchange of its code: who may connect an app, and with which request."""

import pytest

from tests.conftest import Api, Owner
from tests.factories.oauth import (
    connect,
)

pytestmark = pytest.mark.store


def test_connected_app_calls_tools_with_its_scopes(owner: Owner) -> None:
    app = connect(owner.workspace)
    failed, answer = Api(app.access).tool("svc_list_my_projects")
    assert not failed, answer
    failed, answer = Api(app.access).tool("svc_list_products")
    assert failed
    assert "lacks the scope products:read" in answer["message"]
    assert "Connected apps" in answer["message"]
