"""Clients of both protocol versions."""

import pytest

from tests.conftest import Api
from tests.transports.mcp_dispatch.helpers import Client


@pytest.fixture
def handshake(api: Api) -> Client:
    return Client(api, modern=False)


@pytest.fixture
def modern(api: Api) -> Client:
    return Client(api, modern=True)


@pytest.fixture(params=["handshake", "modern"])
def client(request: pytest.FixtureRequest) -> Client:
    chosen_client: Client = request.getfixturevalue(request.param)
    return chosen_client
