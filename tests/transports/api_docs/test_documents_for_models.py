"""``/llms.txt``, the reference as Markdown, and the changelog's page."""

import re

import pytest

from chalicelib import SERVICE, VERSION
from chalicelib.core import areas, manifest
from chalicelib.transports.api_docs import prose
from tests.conftest import Api
from tests.transports.api_docs.conftest import get

LINK = re.compile(r"\]\((https?://[^)/]+)?(/[^)#]*)(#[^)]*)?\)")
PAGES = [
    *(guide.name for guide in (prose.START, *prose.GUIDES, prose.CHANGELOG)),
    *(area.name for area in areas.AREAS),
]


class TestLlmsTxt:
    def test_it_has_the_form_of_llmstxt_org(self) -> None:
        answer = get("/llms.txt")
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
        lines = answer.body.decode().splitlines()
        assert lines[0] == f"# {SERVICE}"
        assert lines[2].startswith("> ")
        assert [line for line in lines if line.startswith("#")][1:] == [
            "## Guides",
            "## Operations",
            "## OpenAPI",
            "## Optional",
        ]
        listed = "\n".join(lines).partition("## Guides")[2].splitlines()
        links = [line for line in listed if line and not line.startswith("##")]
        assert all(re.fullmatch(r"- \[[^\]]+\]\(http[^)]+\): .+", line) for line in links)

    def test_each_link_leads_somewhere(self, database: None) -> None:
        text = get("/llms.txt").body.decode()
        links = [path for _, path, _ in LINK.findall(text)]
        assert len(links) > len(PAGES)
        assert {f"/api/docs/{name}.md" for name in PAGES} <= set(links)
        for path in links:
            assert Api(None).call("GET", path).status == 200, path

    def test_it_is_revalidated_and_has_a_head(self) -> None:
        etag = get("/llms.txt").headers["ETag"]
        assert get("/llms.txt", if_none_match=etag).status == 304
        assert get("/llms.txt", "HEAD").headers["ETag"] == etag


class TestMarkdown:
    @pytest.mark.parametrize("name", PAGES)
    def test_a_page_is_there_as_markdown_with_absolute_links(self, name: str) -> None:
        answer = get(f"/api/docs/{name}.md")
        assert (answer.status, answer.headers["Content-Type"]) == (
            200,
            "text/markdown; charset=utf-8",
        )
        text = answer.body.decode()
        assert text.startswith("# ")
        assert "](/" not in text
        assert "{{" not in text
        assert "{%" not in text

    def test_an_area_has_its_operations_and_records(self) -> None:
        text = get("/api/docs/products.md").body.decode()
        assert "`POST /api/products/create`" in text
        assert "#### Product\n" in text

    @pytest.mark.parametrize("name", ["none.md", ".md", "..md", "products.md.md"])
    def test_an_unknown_one_is_a_404_page(self, name: str) -> None:
        assert get(f"/api/docs/{name}").status == 404


class TestChangelog:
    def test_it_shows_each_release(self) -> None:
        answer = get("/api/docs/changelog")
        assert answer.status == 200
        html = answer.body.decode()
        releases = re.findall(r"^## (\S+)", manifest.changelog(), re.MULTILINE)
        assert VERSION in releases
        for release in releases:
            assert f'<h2 id="{prose.slug(release)}' in html
        assert 'href="/api/docs/changelog" aria-current="page"' in html

    def test_headings_of_the_same_name_have_anchors_of_their_own(self) -> None:
        anchors = re.findall(r' id="([^"]+)"', get("/api/docs/changelog").body.decode())
        assert len(anchors) == len(set(anchors))
        assert {"added", "added-1"} <= set(anchors)

    def test_it_links_to_no_file_of_the_repository(self) -> None:
        for name in ("changelog", "changelog.md"):
            text = get(f"/api/docs/{name}").body.decode()
            assert not re.search(r"\]\((?!https?:|#)|href=\"(?!/|#|https?:)", text)
