"""Drafts of pages behind signed links, as their readers open them."""

from typing import Any

import pytest

from tests.conftest import Answer, Api, Owner, Time, call_console
from tests.factories.examples import Things
from tests.transports.web.test_blog_pages import get
from tests.transports.web.test_site_pages import HTML, bakery  # noqa: F401  a fixture

SOON = "<title>Own</title><h1>Soon</h1><script>document.cookie</script>"


@pytest.fixture
def page(owner: Owner, bakery: Things) -> str:  # noqa: F811  the fixture
    """The id of a page with a draft."""
    call_console(owner.workspace.id, "save_page_draft", id=bakery.page, html=SOON)
    return bakery.page


def read(owner: Owner, page: str) -> Any:
    return call_console(owner.workspace.id, "get_page_draft", id=page)


def link(owner: Owner, page: str) -> str:
    """Return the path and query of the link to a page's draft."""
    url: str = read(owner, page)["draft"]["previewUrl"]
    return url.removeprefix("http://127.0.0.1:8000")


def assert_unpublished(answer: Answer) -> None:
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Robots-Tag"] == "noindex"
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_a_link_shows_the_draft_and_the_address_without_it_shows_the_page(
    owner: Owner, page: str
) -> None:
    path = link(owner, page)
    answer = get(path)
    assert answer.status == 200
    assert "<h1>Soon</h1>" in answer.body.decode()
    assert_unpublished(answer)
    published = get(path.partition("?")[0])
    assert "Soon" not in published.body.decode()
    assert published.headers["Cache-Control"] == "public, max-age=60"


def test_a_draft_has_the_sandbox_of_pages_and_is_not_counted(owner: Owner, page: str) -> None:
    path = link(owner, page)
    answer, published = get(path), get(path.partition("?")[0])
    policy = answer.headers["Content-Security-Policy"]
    assert policy == published.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox ")
    assert "allow-same-origin" not in policy
    assert b"sendBeacon" in published.body
    assert b"sendBeacon" not in answer.body
    assert b"canonical" not in answer.body


def test_a_draft_of_sections_has_the_header_of_its_business(
    api: Api,
    owner: Owner,
    bakery: Things,  # noqa: F811  the fixture
) -> None:
    page = api.post("/api/pages/create", {"projectId": bakery.site, "title": "New"})["page"]["id"]
    sections = [{"type": "heading", "text": "Rye"}, {"type": "prices"}]
    call_console(owner.workspace.id, "save_page_draft", id=page, sections=sections)
    body = get(link(owner, page)).body.decode()
    assert "svc-bar" in body
    assert "<table>" in body


def test_a_link_ends_after_an_hour(owner: Owner, time: Time, page: str) -> None:
    path = link(owner, page)
    time.pass_by(minutes=59)
    assert get(path).status == 200
    time.pass_by(minutes=1)
    answer = get(path, accept_language="en")
    assert answer.status == 404
    assert "This preview has ended" in answer.body.decode()
    assert "Soon" not in answer.body.decode()
    assert_unpublished(answer)


def test_a_link_of_another_page_or_workspace_is_refused(
    api: Api,
    owner: Owner,
    new_owner: Any,
    bakery: Things,  # noqa: F811  the fixture
    page: str,
) -> None:
    token = link(owner, page).partition("?")[2]
    call_console(owner.workspace.id, "save_page_draft", id=bakery.home, html=HTML + "soon")
    stranger = new_owner()
    site = stranger.api().post("/api/projects/create", {"title": "Other"})["project"]
    other = stranger.api().post("/api/pages/create", {"projectId": site["id"], "title": "About"})
    call_console(stranger.workspace.id, "save_page_draft", id=other["page"]["id"], html="soon")
    slug = site["url"].rpartition("/")[2]
    assert get(f"/s/{slug}/?{token}").status == 404
    assert get(f"/s/bakery/?{token}").status == 404
    assert get(f"/s/bakery/none?{token}").status == 404
    until, signature = token.removeprefix("_draft=").split(".")
    for wrong in (
        f"{int(until) + 1}.{signature}",
        f"{until}.{signature[:-1]}",
        f"{until}.{'A' * 43}",
        "1",
        f"{until}.é{signature[1:]}",
    ):
        answer = get(f"/s/bakery/about?_draft={wrong}")
        assert answer.status == 404
        assert "Soon" not in answer.body.decode()


def test_a_link_to_a_draft_that_is_published_leads_to_the_page(owner: Owner, page: str) -> None:
    path = link(owner, page)
    call_console(owner.workspace.id, "publish_page", id=page)
    answer = get(path)
    assert answer.status == 303
    assert answer.headers["Location"] == "http://127.0.0.1:8000/s/bakery/about"
    assert_unpublished(answer)


def test_a_draft_of_a_site_that_is_off_is_shown_and_its_pages_are_not(
    api: Api,
    owner: Owner,
    bakery: Things,  # noqa: F811  the fixture
    page: str,
) -> None:
    api.post("/api/projects/update", {"id": bakery.site, "status": "inactive"})
    path = link(owner, page)
    assert get(path).status == 200
    assert get(path.partition("?")[0]).status == 404


def test_a_draft_of_a_home_page_has_a_link_with_the_path_of_the_site(
    owner: Owner,
    bakery: Things,  # noqa: F811  the fixture
) -> None:
    call_console(owner.workspace.id, "save_page_draft", id=bakery.home, html="<h1>Soon</h1>")
    path = link(owner, bakery.home)
    assert path.startswith("/s/bakery/?_draft=")
    assert get(path).status == 200
    assert get(path.replace("/?", "?")).status == 301
