"""The search over the API reference finds every word of a query, and escapes the query."""

import json
import re

import pytest

from tests.transports.api_docs.conftest import get


def search(query: str) -> list[str]:
    html = get(f"/api/docs?q={query}").body.decode()
    return re.findall(r'<li><a href="([^"]+)">', html.partition("<main")[2])


@pytest.mark.parametrize("word", ["bearer", "kopecks", "cors", "oauth"])
def test_a_word_in_the_text_of_a_guide_is_found(word: str) -> None:
    for url in search(word):
        path, _, anchor = url.partition("#")
        page = get(path).body.decode()
        if anchor in page and word.lower() in page.lower():
            return
    pytest.fail(f"no result for {word} contains the word")


def test_the_number_of_results_is_shown() -> None:
    html = get("/api/docs?q=a").body.decode()
    (count,) = re.findall(r"(\d+) results for “a”; the first 40 are shown", html)
    assert int(count) > len(search("a")) == 40


def test_a_result_contains_every_word_of_the_query() -> None:
    assert search("product+zeppelin") == []


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
def test_markup_in_the_query_is_escaped(query: str) -> None:
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


def test_an_empty_query_shows_the_start_page() -> None:
    for path in ("/api/docs?q=", "/api/docs?q=%20%20"):
        assert get(path).body == get("/api/docs").body


def test_the_search_index_of_the_script_contains_operations() -> None:
    entries = json.loads(get("/api/docs/search.json").body)
    assert ["Create a product", "POST /api/products/create · svc_create_product"] in [
        entry[:2] for entry in entries
    ]
    assert all(len(entry) == 4 for entry in entries)
