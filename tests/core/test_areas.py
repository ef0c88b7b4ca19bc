"""The table of areas, and the area of an operation."""

import pytest

from chalicelib.core.areas import SCOPED, logged_as
from chalicelib.core.scopes import Scope


def test_every_scope_has_a_row_in_the_order_of_the_scopes() -> None:
    assert list(SCOPED) == list(dict.fromkeys(scope.area for scope in Scope))


def test_only_the_scopes_of_the_blog_are_for_admins() -> None:
    assert {scope for scope in Scope if scope.admin_only} == {Scope.BLOG_READ, Scope.BLOG_WRITE}


class TestAreaOfOperation:
    @pytest.mark.parametrize(
        ("path", "area"),
        [
            ("/api/projects/create", "sites"),
            ("/api/categories/create", "categories"),
            ("/api/resources/create-time-off", "resources"),
            ("/api/forms/create", "forms"),
            ("/api/forms/collection-status", "leads"),
            ("/api/public/forms/{id}/submit", "forms"),
        ],
    )
    def test_the_route_decides_the_area(self, path: str, area: str) -> None:
        assert logged_as("chalicelib.domains.overview.operations.any", path=path) == area

    @pytest.mark.parametrize(
        ("module", "area"),
        [
            ("catalog.operations.categories", "categories"),
            ("catalog.operations.upsert", "products"),
            ("bots.operations.keys", "agents"),
            ("billing.flows.charging", "billing"),
        ],
    )
    def test_without_a_route_the_module_or_its_domain_decides_the_area(
        self, module: str, area: str
    ) -> None:
        assert logged_as(f"chalicelib.domains.{module}") == area

    def test_a_job_of_the_engine_has_no_area(self) -> None:
        assert logged_as("chalicelib.engine.jobs") is None
