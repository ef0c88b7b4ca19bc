"""Tests of the header and the footer around pages of sections."""

import re
from base64 import b64encode
from typing import Any

import pytest

from chalicelib.domains.services.rules.open_windows import Interval
from chalicelib.domains.sites.rules import sections
from chalicelib.lib import accents
from chalicelib.transports.web import composed_pages
from tests.conftest import Api, Owner, call_console
from tests.factories.images import drawn, saved
from tests.factories.pages import create, read, save, update

PHONE_FIELDS = [{"name": "phone", "label": "Phone", "type": "phone"}]
HOSTILE = "</style><script>alert(1)</script>\"'"


def visit(page: Any) -> str:
    path = "/s/" + page["url"].partition("/s/")[2]
    answer = Api(None).call("GET", path if page["isHome"] is False else path + "/")
    assert answer.status == 200
    return answer.body.decode()


def brand(owner: Owner, **values: Any) -> None:
    call_console(owner.workspace.id, "set_workspace", account_id=owner.workspace.owner_id, **values)


def composed(api: Api, site: str, title: str = "Home", **fields: Any) -> Any:
    page = create(api, site, title, **fields)
    return update(api, page, sections=[{"type": "heading", "text": "Hair"}])


def test_a_composed_page_has_the_brand_of_its_business(owner: Owner, site: str) -> None:
    api = owner.api()
    brand(owner, name="Hair & Co", address="Arbat 1", phone="+7 495 123-45-67", accent="teal")
    page = composed(api, site)
    composed(api, site, "Prices")
    composed(api, site, "Privacy policy")
    html = visit(page)
    header, _, remainder = html.partition("</header>")
    footer = remainder.partition("<footer")[2]
    assert "<span>Hair &amp; Co</span>" in header
    assert 'href="tel:+74951234567"' in header.replace("-", "")
    assert 'aria-current="page">Home</a>' in header
    assert ">Prices</a>" in header
    assert ">Privacy policy</a>" not in header
    assert accents.colours("teal")[0] in header
    assert 'rel="icon" href="data:image/svg+xml,' in header
    assert 'href="https://yandex.ru/maps/?text=Arbat%201"' in footer
    assert ">Privacy policy</a>" in footer


def test_the_stored_html_of_a_composed_page_does_not_change(api: Api, site: str) -> None:
    page = composed(api, site)
    stored = read(api, page)["page"]["html"]
    assert "svc-bar" in visit(page)
    assert "svc-bar" not in stored
    assert read(api, page)["page"]["html"] == stored


def test_what_a_business_does_not_have_is_not_shown(owner: Owner, site: str) -> None:
    html = visit(composed(owner.api(), site))
    for part in ("<nav", "<address", "tel:", "/book/", "<dl", "Privacy policy", "<img"):
        assert part not in html


def test_a_hostile_name_is_escaped_everywhere(owner: Owner, site: str) -> None:
    api = owner.api()
    brand(owner, name=HOSTILE, address=HOSTILE)
    page = composed(api, site, HOSTILE)
    composed(api, site, HOSTILE + "2")
    html = visit(page)
    assert "<script>alert" not in html


@pytest.mark.parametrize(
    "own",
    [
        lambda html: html.replace("<main>", "<main><p>Own</p>"),
        lambda html: html.replace("max-width: 40rem", "max-width: 50rem"),
        lambda html: html.replace("</main>", "<p>Own</p></main>"),
    ],
)
def test_a_page_with_html_of_its_author_keeps_its_look(api: Api, site: str, own: Any) -> None:
    page = composed(api, site)
    save(api, page, own(read(api, page)["page"]["html"]))
    html = visit(page)
    assert "svc-bar" not in html
    assert "<h2>Hair</h2>" in html


def test_a_snippet_on_a_composed_page_stays(api: Api, site: str) -> None:
    page = composed(api, site)
    html = read(api, page)["page"]["html"]
    save(api, page, html.replace("</body>", "<p>Chat</p></body>"))
    shown = visit(page)
    assert "<p>Chat</p>" in shown
    assert "svc-bar" in shown


def test_weekdays_with_the_same_hours_are_shown_together() -> None:
    day, short = (Interval("10:00", "19:00"),), (Interval("10:00", "15:00"),)
    groups = composed_pages.group_hours([day, day, day, (), short, short, ()])
    assert groups == [(0, 2, day), (4, 5, short)]


def test_a_hero_is_the_heading_of_its_page_and_has_the_booking_link(
    owner: Owner, site: str
) -> None:
    api = owner.api()
    page = create(api, site)
    hero = {"type": "hero", "title": "Hair <b>", "text": "For **all**."}
    update(api, page, sections=[hero, {"type": "columns", "title": "About", "text": "Us"}])
    stored, columns = read(api, page)["page"]["sections"]
    assert (stored["title"], columns["title"]) == ("Hair <b>", "About")
    html = visit(page)
    assert html.count("<h1") == 1
    assert '<h1 class="svc-title">Hair &lt;b&gt;</h1>' in html
    assert '<h2 class="svc-title">About</h2>' in html
    assert "/book/" not in html
    call_console(
        owner.workspace.id, "set_booking_page", account_id=owner.workspace.owner_id, isOn=True
    )
    main = visit(page).partition("<main")[2]
    assert f"/book/{owner.workspace.slug}" in main.partition("About")[0]


def test_a_hero_and_columns_have_only_the_parts_that_they_were_given() -> None:
    def html(photo: sections.Photo | None = None, **fields: str) -> str:
        section = sections.Section.model_validate(fields)
        return sections._beside_photo(section, photo).replace("</p>\n", "</p>")

    title, text = '<h2 class="svc-title">Hair</h2>', "<p>All</p>"
    hero = '<div class="svc-hero">\n<div>{}<!--section:booking--><!--/section--></div>\n</div>'
    assert html(type="hero", title="Hair") == hero.format(title)
    assert html(type="hero", title="Hair", text="All") == hero.format(title + text)
    columns = '<div class="svc-columns{}">\n<div>{}</div>\n{}</div>'
    assert html(type="columns", text="All") == columns.format("", text, "")
    photo = '<img src="/f/1" alt="" width="4" height="3">'
    beside = html(sections.Photo("/f/1", 4, 3), type="columns", title="Hair", text="All")
    assert beside == columns.format(" svc-pair", title + text, photo)


@pytest.mark.parametrize(
    ("kind", "agrees"), [("phone", True), ("email", True), ("text", False), ("consent", False)]
)
def test_a_form_that_takes_contacts_has_a_box_for_consent(
    owner: Owner, site: str, kind: str, agrees: bool
) -> None:
    api = owner.api()
    fields = [{"name": "a", "label": "A", "type": kind}]
    form = api.post("/api/forms/create", {"title": "Call me", "fields": fields})["form"]["id"]
    page = create(api, site)
    update(api, page, sections=[{"type": "form", "formId": form}])
    policy = composed(api, site, "Privacy policy")
    form_html = visit(page).partition("<form")[2].partition("</form>")[0]
    box = re.search(r'<input type="checkbox" name="_consent"[^>]*>', form_html)
    assert (box is not None) is agrees
    assert box is None or (" required" in box[0] and " checked" not in box[0])
    assert f'href="{policy["url"]}"' in form_html


def test_the_policy_that_an_owner_names_wins(owner: Owner, site: str) -> None:
    api, named = owner.api(), "https://hair.example/rules"
    form = api.post("/api/forms/create", {"title": "Call me", "fields": PHONE_FIELDS})["form"]["id"]
    page = create(api, site)
    update(api, page, sections=[{"type": "form", "formId": form}])
    policy = composed(api, site, "Privacy policy")
    brand(owner, privacyUrl=named)
    html = visit(page)
    assert html.count(f'href="{named}"') == 2, "in the form and in the footer"
    assert policy["url"] not in html.partition("</header>")[2]
    brand(owner, privacyUrl=None)
    assert visit(page).count(f'href="{policy["url"]}"') == 2


def test_hours_in_a_section_are_not_repeated_in_the_footer(owner: Owner, site: str) -> None:
    api = owner.api()
    staff = call_console(owner.workspace.id, "create_resource", name="Ada")["resource"]["id"]
    rules = [{"weekdays": ["mon"], "start": "10:00", "end": "19:00"}]
    call_console(owner.workspace.id, "set_availability", resourceId=staff, rules=rules)
    page = composed(api, site)
    assert "10:00–19:00" in visit(page).partition("<footer")[2]
    update(api, page, sections=[{"type": "hours"}])
    content, _, footer = visit(page).partition("<footer")
    assert "10:00–19:00" in content
    assert "10:00" not in footer


def test_the_photo_of_a_hero_says_what_it_shows(owner: Owner, site: str) -> None:
    api = owner.api()
    image = call_console(
        owner.workspace.id,
        "upload_file",
        name="hall.jpg",
        content=b64encode(saved(drawn(), "JPEG")).decode(),
    )
    photo = image["file"]["id"]
    hero = {"type": "hero", "title": 'Hair & "Co"', "fileId": photo}
    columns = {"type": "columns", "text": "Beside", "fileId": photo}
    html = visit(update(api, composed(api, site), sections=[hero, columns]))
    assert re.findall(r'alt="([^"]*)" width', html) == ["Photo: Hair &amp; &quot;Co&quot;", ""]
    hero.pop("fileId")
    html = visit(update(api, composed(api, site, "Other"), sections=[hero, columns]))
    assert re.findall(r'alt="([^"]*)" width', html) == [""]
