"""The platform's blog in the console, for ADMIN accounts."""

from typing import Any

import pytest

from chalicelib.transports.console.routes import ROUTES
from tests.conftest import PASSWORD, Api, call_operator
from tests.factories.console import HOSTILE, Person, begun
from tests.transports.console.forms.helpers import error_beside, text, value_of

PATH = "/console/blog"


def signed_in(role: str) -> Person:
    email = f"{role}@example.com"
    call_operator("create_account", email=email, password=PASSWORD, name=role, role=role)
    return Person(email, begun(email))


@pytest.fixture
def admin(database: None) -> Person:
    return signed_in("admin")


def seen(answer: Any) -> str:
    return text(answer).split('name="seen" value="')[1].split('"')[0]


def test_a_post_is_written_published_renamed_and_deleted(admin: Person) -> None:
    assert f'href="{PATH}"' in text(admin.get("/console/account"))
    form = {"title": "Fresh rye", "content": "# Rye\n\nWe **bake**.", "once": "1"}
    for _ in "12":
        answer = admin.post(PATH, form)
        assert answer.headers["Location"] == f"{PATH}/fresh-rye?done=post_created"
    assert "Draft" in text(admin.get(PATH))
    assert Api(None).call("GET", "/blog/fresh-rye").status == 404
    page = admin.get(f"{PATH}/fresh-rye")
    form |= {"seen": seen(page), "slug": "rye", "published": "yes", "tags": "bread, rye"}
    answer = admin.post(f"{PATH}/fresh-rye", form)
    assert answer.headers["Location"] == f"{PATH}/rye?done=post_saved"
    assert "<strong>bake</strong>" in Api(None).call("GET", "/blog/rye").body.decode()
    assert value_of(admin.get(f"{PATH}/rye"), "tags") == "bread, rye"
    assert "permanently" in text(admin.get(f"{PATH}/rye/delete"))
    for _ in "12":
        answer = admin.post(f"{PATH}/rye/delete")
        assert answer.headers["Location"] == f"{PATH}?done=post_deleted"
    assert Api(None).call("GET", "/blog/rye").status == 404


def test_wrong_fields_are_reported_and_names_are_shown_as_text(admin: Person) -> None:
    answer = admin.post(PATH, {"title": HOSTILE, "slug": "a b"})
    assert answer.status == 400
    assert "Latin letters" in error_beside(answer, "slug")
    assert value_of(answer, "title") == HOSTILE
    assert HOSTILE not in answer.body.decode()
    admin.post(PATH, {"title": HOSTILE, "slug": "x"})
    for path in (PATH, f"{PATH}/x", f"{PATH}/x/delete"):
        page = admin.get(path)
        assert page.status == 200
        assert HOSTILE not in page.body.decode()
        assert "&lt;img src=x" in page.body.decode()


def test_other_accounts_do_not_find_a_way_in(admin: Person) -> None:
    admin.post(PATH, {"title": "Fresh rye"})
    user = signed_in("user")
    assert f'href="{PATH}"' not in text(user.get("/console/account"))
    for route, page in ROUTES.items():
        path = route.replace("{post}", "fresh-rye")
        if page.admin and page.get:
            assert user.get(path).status == 403
        if page.admin and page.post:
            assert user.post(path, {"title": "Mine"}).status == 403
    assert "Fresh rye" in text(admin.get(PATH))
