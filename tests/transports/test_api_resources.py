"""Each path of the REST API, and each part of a path, is one resource of API Gateway."""

import pytest

from app import app
from chalicelib.transports.console.routes import WORKSPACE

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


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        (["forms"], "forms"),
        (["forms", "1"], "forms/{form}"),
        (["keys", "new"], "keys/new"),
        (["sites", "1", "pages", "2", "html"], "sites/{site}/pages/{page}/html"),
        (["sites", "1", "pages", "2", "3"], "sites/{site}/pages/{page}/{version}"),
        (["nothing"], None),
        (["forms", "1", "nothing"], None),
    ],
)
def test_a_page_of_a_workspace_is_found_by_the_parts_of_its_path(
    parts: list[str], path: str | None
) -> None:
    values = {"workspace": "w"} | {f"part{n}": part for n, part in enumerate(parts, 1)}
    match = app.workspace_pages.match(values)
    assert (match and match.path) == (path and f"{WORKSPACE}/{path}")
    assert not match or match.values["workspace"] == "w"
