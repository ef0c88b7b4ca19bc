"""The API reference over HTTP is cached and safe."""

import re

import pytest

from tests.conftest import Api
from tests.transports.api_docs.conftest import get
from tests.transports.conftest import LocalServer

PAGES = ["/api/docs", "/api/docs/errors", "/api/docs/products", "/api/docs/search.json"]


@pytest.mark.parametrize("path", PAGES)
def test_pages_need_no_key_and_are_cached_for_a_minute(path: str) -> None:
    answer = get(path)
    assert answer.status == 200
    assert answer.headers["Cache-Control"] == "public, max-age=60"
    revalidated = get(path, if_none_match=answer.headers["ETag"])
    assert (revalidated.status, revalidated.body) == (304, b"")
    head = get(path, "HEAD")
    assert (head.status, head.headers["ETag"]) == (200, answer.headers["ETag"])
    refusal = Api(None).call_refused("POST", path, {})
    assert (refusal.status, refusal.headers["Allow"]) == (405, "GET, HEAD")


def test_a_page_loads_only_the_script_of_the_reference() -> None:
    answer = get("/api/docs/products")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    html = answer.body.decode()
    assert re.findall(r"<script[^>]*>", html) == [
        f'<script src="{re.search(r"/assets/docs[.][0-9a-f]{12}[.]js", html)[0]}" defer>'  # type: ignore[index]
    ]
    assert not re.search(r'\son\w+=|style="', html)


def test_the_table_of_page_sizes_contains_only_lists() -> None:
    page = get("/api/docs/conventions").body.decode()
    sizes = page.partition('id="lists-and-pages"')[2].partition("<h2")[0]
    assert "/api/products/list" in sizes
    assert "uploads/create" not in sizes


def test_an_unknown_section_is_a_404_page_with_a_link_to_the_reference() -> None:
    for path in ("/api/docs/none", "/api/docs/..", "/api/docs/start", "/api/docs/%3Cb%3E"):
        answer = get(path)
        assert answer.status == 404, path
        assert b'href="/api/docs"' in answer.body
        assert b"<b>" not in answer.body.partition(b"<main")[2]


def test_the_page_frame_is_in_the_readers_language_and_the_guide_is_marked_as_english() -> None:
    html = get("/api/docs", accept_language="ru").body.decode()
    assert '<html lang="ru">' in html
    assert "Поиск по справочнику" in html
    assert '<div class="guide" lang="en">' in html


def test_the_error_for_an_unknown_api_path_contains_the_url_of_the_reference(
    local_server: LocalServer,
) -> None:
    reply = local_server.request(b"GET /api/nothing HTTP/1.1\r\nHost: x\r\n\r\n")
    assert reply.status == 404
    assert "/api/docs" in reply.data["message"]
