"""The console of test workspaces: how one is made, and the band on its pages."""

from tests.factories.console import Person, World
from tests.transports.console.forms.helpers import text

BAND = "Nothing here is real"
NEW = "/console/account/test-workspaces"


def make(owner: Person, name: str = "Tests") -> str:
    """Create a test workspace as the page does, and return its path."""
    created = owner.post(NEW, {"name": name})
    assert created.status == 303
    return created.headers["Location"].partition("?")[0]


def test_an_account_makes_a_test_workspace_whose_pages_have_a_band(
    world: World, console_owner: Person
) -> None:
    assert NEW in text(console_owner.get("/console/account"))
    home = make(console_owner)
    for path in ("", "/products", "/keys", "/settings"):
        page = console_owner.get(home + path)
        assert (page.status, page.headers["X-Robots-Tag"]) == (200, "noindex")
        assert BAND in text(page)
    assert BAND not in text(console_owner.get(world.here.path))
    assert BAND not in text(console_owner.get("/console/account"))


def test_a_fourth_test_workspace_is_refused_with_the_reason(console_owner: Person) -> None:
    for number in range(3):
        make(console_owner, f"Tests {number}")
    refusal = console_owner.post(NEW, {"name": "Tests 4"})
    assert refusal.status == 409
    assert "three test workspaces" in text(refusal)
