"""Tests of pages of sections, as they are stored and as visitors see them."""

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.ids import new_id
from chalicelib.domains.sites.rules import sections
from chalicelib.domains.sites.rules.sections import Section, read_sections, replace_sections
from chalicelib.transports.web import page_sections
from tests.conftest import Api, Owner, call_console
from tests.factories.files import upload
from tests.factories.images import drawn, saved
from tests.factories.pages import create, read, refused_field, save, update

ALL = [
    {"type": "heading", "text": "Nails & hair"},
    {"type": "text", "text": "We are **open**.\n\n- one\n- two"},
    {"type": "prices"},
    {"type": "hours"},
    {"type": "booking", "text": "Book <now>"},
    {"type": "map", "text": "Москва, Арбат 1"},
]


def visit(page: Any) -> str:
    answer = Api(None).call("GET", "/s/" + page["url"].partition("/s/")[2] + "/")
    if answer.status == 301:
        answer = Api(None).call("GET", answer.headers["Location"])
    assert answer.status == 200
    return answer.body.decode()


def test_sections_become_html_and_are_read_back(api: Api, site: str) -> None:
    page = create(api, site)
    update(api, page, sections=ALL)
    answer = read(api, page)["page"]
    contents = [
        {name: text for name, text in section.items() if text} for section in answer["sections"]
    ]
    assert contents == ALL
    assert "<h2>Nails &amp; hair</h2>" in answer["html"]
    assert "<strong>open</strong>" in answer["html"]
    update(api, page, sections=[{"type": "heading", "text": "Hair"}])
    answer = read(api, page)["page"]
    assert "Nails" not in answer["html"]
    assert answer["html"].count("<h1>") == 1


def test_the_rest_of_a_page_stays_and_an_empty_list_removes_the_sections(
    api: Api, site: str
) -> None:
    page, html = create(api, site), "<body><p>Own</p></body>"
    save(api, page, html)
    assert read(api, page)["page"]["sections"] is None
    update(api, page, sections=[{"type": "heading", "text": "Hair"}])
    assert "<p>Own</p>" in read(api, page)["page"]["html"]
    update(api, page, title="Other")
    assert len(read(api, page)["page"]["sections"]) == 1
    update(api, page, sections=[])
    assert read(api, page)["page"]["html"].replace("\n", "") == html


def test_an_earlier_version_has_the_sections_that_it_was_made_of(api: Api, site: str) -> None:
    page = create(api, site)
    update(api, page, sections=[{"type": "heading", "text": "First"}])
    update(api, page, sections=[{"type": "heading", "text": "Second"}])
    (version,) = api.get(f"/api/pages/{page['id']}/versions")["versions"]
    api.post("/api/pages/restore-version", {"id": page["id"], "versionId": version["id"]})
    assert read(api, page)["page"]["sections"][0]["text"] == "First"


@pytest.mark.parametrize(
    ("section", "field"),
    [
        ({"type": "heading"}, "sections.1.text"),
        ({"type": "heading", "text": " "}, "sections.1.text"),
        ({"type": "photo"}, "sections.1.fileId"),
        ({"type": "photo", "fileId": "0" * 26}, "sections.1.fileId"),
        ({"type": "form"}, "sections.1.formId"),
        ({"type": "video"}, "sections.1.type"),
        ({"text": "x"}, "sections.1.type"),
    ],
)
def test_a_wrong_section_is_named(api: Api, site: str, section: Any, field: str) -> None:
    page = create(api, site)
    body = {"id": page["id"], "sections": [{"type": "prices"}, section]}
    assert refused_field(api, "/api/pages/update", body)["field"] == field
    assert read(api, page)["page"]["html"] == ""


def test_visitors_see_present_prices_hours_booking_and_form(owner: Owner, site: str) -> None:
    home = owner.workspace.id
    api = owner.api()

    def call(operation: str, **arguments: Any) -> Any:
        return call_console(home, operation, account_id=owner.workspace.owner_id, **arguments)

    field = {"name": "phone", "label": "Phone", "type": "phone"}
    form = call("create_form", title="Call me", fields=[field])["form"]["id"]
    page = create(api, site)
    update(api, page, sections=[*ALL, {"type": "form", "formId": form}])
    html = visit(page)
    assert sections.BEGIN not in html
    assert "/book/" not in html
    staff = call("create_resource", name="Ada")["resource"]["id"]
    rules = [{"weekday": "mon", "start": "10:00", "end": "19:00"}]
    call("set_availability", resourceId=staff, rules=rules)
    service = call("create_service", name="Cut", durationMin=30, price=150_000, resourceIds=[staff])
    call("set_booking_page", isOn=True, offer=[service["service"]["id"]])
    html = visit(page)
    assert '<th scope="row">Cut</th>' in html
    assert "1,500" in html
    assert 'Monday</th><td><span class="whole">10:00–19:00' in html
    assert "Tuesday</th><td>Closed" in html
    assert f'/book/{owner.workspace.slug}" target="_blank" rel="noopener">Book &lt;now&gt;' in html
    assert f"/api/public/forms/{form}/submit" in html
    call("delete_form", id=form)
    assert f"/api/public/forms/{form}/submit" not in visit(page)


def test_a_photo_shows_a_file_of_the_workspace(api: Api, site: str) -> None:
    file = upload(api, "hall.jpg", saved(drawn(), "JPEG"))
    page = create(api, site)
    update(api, page, sections=[{"type": "photo", "fileId": file["id"], "text": 'The "hall"'}])
    assert f'<img src="{file["url"]}" alt="The &quot;hall&quot;"' in visit(page)
    assert api.get(f"/api/files/{file['id']}")["usedBy"][0]["id"] == page["id"]
    assert api.get(f"/api/pages/{page['id']}")["page"]["sections"][0]["url"] == file["url"]
    note = upload(api, "a.txt")["id"]
    body = {"id": page["id"], "sections": [{"type": "photo", "fileId": note}]}
    assert refused_field(api, "/api/pages/update", body)["field"] == "sections.0.fileId"


HOSTILE = st.text(st.sampled_from("<>!-/sections:\\\"'&{}x *#[]()\n"), min_size=1).filter(str.strip)


@given(st.lists(HOSTILE, min_size=1, max_size=4), HOSTILE)
def test_no_text_ends_the_comment_or_stays_after_the_next_save(
    texts: list[str], content: str
) -> None:
    html = f"<body>{content.replace('<', '')}</body>"
    given_sections = [
        Section(type=kind, text=text) for text in texts for kind in ("heading", "text", "booking")
    ]
    page_html = replace_sections(html, title="x", sections=given_sections, photos={})
    read_back = read_sections(page_html)
    assert read_back is not None
    assert [section.text for section in read_back] == [section.text for section in given_sections]
    assert replace_sections(page_html, title="x", sections=[], photos={}).replace(
        "\n", ""
    ) == html.replace("\n", "")
    assert "<script" not in page_html


@pytest.mark.parametrize(
    "html",
    [
        "<!--sections []-->" * 50_000,
        "<html " * 150_000,
        f"<!--sections []-->{'<!--section:hours-->' * 40_000}<!--/sections-->",
    ],
)
def test_the_time_to_find_sections_grows_linearly_with_the_html(html: str) -> None:
    began = time.thread_time()
    sections.fill_places(html, lambda *_: "")
    replace_sections(html, title="x", sections=read_sections(html) or [], photos={})
    sections.language(html, title="x")
    assert time.thread_time() - began < 20  # CPU seconds of this thread; 0.1 at most


def test_a_form_of_another_workspace_is_not_shown(api: Api, site: str) -> None:
    page = create(api, site)
    update(api, page, sections=[{"type": "form", "formId": new_id()}])
    assert "<form" not in visit(page)


@pytest.mark.parametrize(
    ("currency", "price", "title", "shown"),
    [
        ("GBP", 1_250, "Prices", "£12.50"),
        ("GBP", 150_000, "Prices", "£1,500"),
        ("JPY", 1_250, "Prices", "¥1,250"),
        ("KWD", 1_250, "Prices", "KWD\u00a01.250"),
        ("GBP", 1_250, "Цены", "12,50\u00a0£"),
        ("JPY", 1_250, "Цены", "1\u00a0250\u00a0¥"),
        ("KWD", 1_250, "Цены", "1,250\u00a0KWD"),
    ],
)
def test_prices_are_in_the_workspaces_currency_and_the_pages_language(
    owner: Owner, site: str, currency: str, price: int, title: str, shown: str
) -> None:
    api = owner.api()
    api.post("/api/workspace/update", {"currency": currency})
    api.post("/api/services/create", {"name": "Cut", "durationMin": 30, "price": price})
    page = create(api, site)
    update(api, page, title=title)
    update(api, page, sections=[{"type": "prices"}])
    assert f'<th scope="row">Cut</th><td class="svc-price">{shown}</td>' in visit(page)


def test_prices_are_in_their_order_and_say_how_many_they_lack(
    owner: Owner, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_sections, "MAX_RECORDS", 3)
    api = owner.api()
    page = create(api, site)
    update(api, page, sections=[{"type": "prices"}])
    for number in range(5):
        body = {"name": f"Cut {number}", "durationMin": 30}
        service = api.post("/api/services/create", body)["service"]["id"]
        api.post("/api/services/update", {"id": service, "sortOrder": -number})
    html = visit(page)
    assert re.findall("Cut [0-9]", html) == ["Cut 4", "Cut 3", "Cut 2"]
    assert "And 2 more services." in html
