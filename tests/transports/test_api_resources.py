"""The resources of the REST API: each path and each part of a path is one."""

from app import app

MAX_RESOURCES = 300
"""API Gateway's quota of resources of a REST API, which AWS raises on request only."""
RESERVE = 20
"""Resources that stay free, so that a release never fails for one route."""


def test_the_routes_leave_room_below_api_gateways_quota_of_resources() -> None:
    parts = [path.strip("/").split("/") for path in app.routes]
    resources = {
        tuple(path_parts[:end]) for path_parts in parts for end in range(1, len(path_parts) + 1)
    }
    assert len(resources) <= MAX_RESOURCES - RESERVE
