"""Each path of the REST API, and each part of a path, is one resource of API Gateway."""

from app import app

MAX_RESOURCES = 300
"""Maximum resources of a REST API. AWS raises this quota of API Gateway on request only."""
RESERVE = 20
"""Resources that are kept free, so that a release never fails for one route."""


def test_the_routes_leave_room_below_api_gateways_quota_of_resources() -> None:
    parts = [path.strip("/").split("/") for path in app.routes]
    resources = {
        tuple(path_parts[:end]) for path_parts in parts for end in range(1, len(path_parts) + 1)
    }
    assert len(resources) <= MAX_RESOURCES - RESERVE
