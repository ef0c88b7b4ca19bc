"""The API reference over HTTP is cached, searchable and safe."""

import json
import re

import pytest

from tests.conftest import Answer, Api
from tests.transports.conftest import LocalServer


def get(path: str, method: str = "GET", **headers: str) -> Answer:
    with_hyphens = {name.replace("_", "-"): value for name, value in headers.items()}
    return Api(None).call(method, path, headers=with_hyphens)


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


class TestSearch:
    def search(self, query: str) -> list[str]:
        html = get(f"/api/docs?q={query}").body.decode()
        return re.findall(r'<li><a href="([^"]+)">', html.partition("<main")[2])

    @pytest.mark.parametrize("word", ["bearer", "kopecks", "cors", "oauth"])
    def test_a_word_in_the_text_of_a_guide_is_found(self, word: str) -> None:
        for url in self.search(word):
            path, _, anchor = url.partition("#")
            page = get(path).body.decode()
            if anchor in page and word.lower() in page.lower():
                return
        pytest.fail(f"no result for {word} contains the word")

    def test_the_number_of_results_is_shown(self) -> None:
        html = get("/api/docs?q=a").body.decode()
        (count,) = re.findall(r"(\d+) results for “a”; the first 40 are shown", html)
        assert int(count) > len(self.search("a")) == 40

    def test_a_result_contains_every_word_of_the_query(self) -> None:
        assert self.search("product+zeppelin") == []

    @pytest.mark.parametrize(
        "query",
        [
            "%3Cscript%3Ealert(1)%3C/script%3E",
            "%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E",
            "%27onfocus=alert(1)%20x=%27",
            "{{7*7}}{%25%20raw%20%25}",
            "%00%0d%0aSet-Cookie:x",
            "x" * 5000,
        ],
    )
    def test_markup_in_the_query_is_escaped(self, query: str) -> None:
        answer = get(f"/api/docs?q={query}")
        assert answer.status == 200
        html = answer.body.decode()
        assert "<script>alert" not in html
        assert "<img" not in html
        assert ">49<" not in html
        assert "x" * 101 not in html
        assert "Set-Cookie" not in answer.headers
        assert html.count("<input") == 1
        box = re.search(r"<input[^>]*>", html)
        assert box is not None
        assert not re.search(r"\son\w+=", re.sub(r'"[^"]*"', "", box[0]))

    def test_an_empty_query_shows_the_start_page(self) -> None:
        for path in ("/api/docs?q=", "/api/docs?q=%20%20"):
            assert get(path).body == get("/api/docs").body

    def test_the_search_index_of_the_script_contains_operations(self) -> None:
        entries = json.loads(get("/api/docs/search.json").body)
        assert ["Create a product", "POST /api/products/create · svc_create_product"] in [
            entry[:2] for entry in entries
        ]
        assert all(len(entry) == 4 for entry in entries)


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
