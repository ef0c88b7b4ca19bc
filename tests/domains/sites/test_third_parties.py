"""Warnings about frames and counters, which need a site with a host of its own."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.domains.sites.rules import third_parties
from tests.conftest import Api
from tests.factories.pages import SAVE, create, new_site
from tests.support.warned import warned

OWN_URL = "http://127.0.0.1:8000"
VIDEO = '<iframe src="https://www.youtube.com/embed/x"></iframe>'
COUNTER = '<script>m.src="https://mc.yandex.ru/metrika/tag.js"</script>'


@pytest.mark.parametrize(
    ("html", "hosts"),
    [
        (VIDEO, ["www.youtube.com"]),
        (COUNTER, ["mc.yandex.ru"]),
        (f"{COUNTER}<IFRAME SRC='//Yandex.ru/map-widget'></IFRAME>", ["yandex.ru", "mc.yandex.ru"]),
        (
            '<script src="//www.googletagmanager.com/gtag/js"></script>',
            ["www.googletagmanager.com"],
        ),
        ('<object data="https://a.example/x.swf"></object>', ["a.example"]),
        ('<embed src="https://a.example/x"><iframe src="https://a.example/y">', ["a.example"]),
        (f'<iframe src="{OWN_URL}/book/salon"></iframe>', []),
        ('<iframe srcdoc="<p>Hi"></iframe><iframe src="/form/x"></iframe>', []),
        ("<p>Read about &lt;iframe src='https://a.example'&gt;</p>", []),
        ('<a href="https://notmc.yandex.ru.example/">Link</a>', []),
        ('<a href="https://www.youtube.com/watch">Link</a><img src="https://a.example/x.png">', []),
    ],
)
def test_hosts_of_frames_and_counters_are_found(html: str, hosts: list[str]) -> None:
    assert third_parties.needing_own_host(html, own_url=OWN_URL) == hosts


@pytest.fixture
def page(api: Api) -> Any:
    return create(api, new_site(api))


def hosts(answer: dict[str, Any]) -> list[str]:
    (warning,) = warned(answer)
    assert warning["code"] == "parts_need_domain"
    assert warning["count"] >= len(warning["hosts"])
    named: list[str] = warning["hosts"]
    return named


def test_each_way_to_save_a_page_warns(api: Api, page: Any) -> None:
    saved = api.post(SAVE, {"id": page["id"], "html": VIDEO + COUNTER})
    assert hosts(saved) == ["www.youtube.com", "mc.yandex.ru"]
    assert "/api/projects/set-domain" in saved["warnings"][0]
    edit = {"find": "</iframe>", "replace": "</iframe><p>Rye"}
    assert "www.youtube.com" in hosts(api.post(SAVE, {"id": page["id"], "edits": [edit]}))
    sections = [{"type": "heading", "text": "Bread"}]
    updated = api.post("/api/pages/update", {"id": page["id"], "sections": sections})
    assert "www.youtube.com" in hosts(updated)
    source = {"projectId": page["projectId"], "html": VIDEO}
    assert "www.youtube.com" in hosts(api.post("/api/pages/import-html", source))
    api.post(SAVE, {"id": page["id"], "html": "<p>Rye"})
    version = api.get(f"/api/pages/{page['id']}/versions")["versions"][0]
    restored = {"id": page["id"], "versionId": version["id"]}
    assert "www.youtube.com" in hosts(api.post("/api/pages/restore-version", restored))


def test_a_page_without_frames_has_no_warning(api: Api, page: Any) -> None:
    assert "warnings" not in api.post(SAVE, {"id": page["id"], "html": "<p>Rye"})


def test_a_warning_of_a_tool_names_the_tool(api: Api, page: Any) -> None:
    _, result = api.tool("svc_save_page_html", id=page["id"], html=VIDEO)
    assert "svc_set_site_domain" in result["data"]["warnings"][0]


def test_a_site_with_a_host_of_its_own_needs_no_other(
    api: Api, page: Any, reload_settings: Callable[[], None]
) -> None:
    os.environ["SITES_DOMAIN"] = "sites.example"
    reload_settings()
    assert "warnings" not in api.post(SAVE, {"id": page["id"], "html": VIDEO})


def test_a_warning_names_five_hosts_at_most(api: Api, page: Any) -> None:
    html = "".join(f'<iframe src="https://{n}.example/"></iframe>' for n in range(7))
    saved = api.post(SAVE, {"id": page["id"], "html": html})
    assert hosts(saved) == [f"{n}.example" for n in range(5)]
    assert (warned(saved)[0]["count"], "and 2 more" in saved["warnings"][0]) == (7, True)
