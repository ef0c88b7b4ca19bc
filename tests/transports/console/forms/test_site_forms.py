"""Sites and pages are created, edited and deleted in the console, over HTTP."""

import re
from typing import Any

import pytest

from chalicelib.transports.console.sites import page_editor, starters
from tests.conftest import Answer, Api, call_console, call_operator
from tests.factories.console import HOSTILE, World
from tests.factories.images import drawn, saved
from tests.transports.console.forms.helpers import error_beside, hidden_fields, text, value_of


def sites_of(world: World) -> str:
    return f"{world.here.path}/sites"


def site_of(world: World) -> str:
    return f"{sites_of(world)}/{world.here.site}"


def page_of(world: World) -> str:
    return f"{site_of(world)}/pages/{world.here.page}"


def sites(world: World) -> list[dict[str, Any]]:
    sites: list[dict[str, Any]] = call_console(world.here.workspace_id, "list_sites")["projects"]
    return sites


def pages(world: World, site: str = "") -> list[dict[str, Any]]:
    arguments = {"projectId": site or world.here.site}
    pages: list[dict[str, Any]] = call_console(world.here.workspace_id, "list_pages", **arguments)[
        "pages"
    ]
    return pages


def html_of(world: World, page: str = "") -> str:
    page_row = call_console(world.here.workspace_id, "get_page", id=page or world.here.page)
    return str(page_row["page"]["html"])


def save(world: World, html: str) -> None:
    call_console(world.here.workspace_id, "save_page_html", id=world.here.page, html=html)


def version_in(answer: Answer) -> str:
    """Return the version of the page that a form undoes."""
    return re.findall(r'name="ifVersion" value="(\d+)"', answer.body.decode())[0]


class TestCreating:
    @pytest.mark.parametrize("trade", starters.TRADES)
    def test_a_site_begins_with_the_page_of_a_trade_once(self, world: World, trade: str) -> None:
        console_owner = world.person("boss")
        form = {"title": "Ours", "trade": trade, "once": "1"}
        (next_page,) = {
            console_owner.post(sites_of(world), form).headers["Location"] for _ in range(2)
        }
        site = next_page.partition("/sites/")[2].partition("/")[0]
        (page,) = pages(world, site)
        read = call_console(world.here.workspace_id, "get_page", id=page["id"])["page"]
        kinds = [section["type"] for section in read["sections"]]
        assert kinds[:4] == ["hero", "columns", "heading", "text"]
        assert "prices" in kinds
        assert "trade_" not in read["html"]
        assert console_owner.get(next_page).status == 200

    def test_a_site_and_its_first_page_are_created_once_and_visible(self, world: World) -> None:
        console_owner = world.person("boss")
        responses = [
            console_owner.post(sites_of(world), {"title": "Bakery", "once": "1"}) for _ in range(2)
        ]
        (next_page,) = {response.headers["Location"] for response in responses}
        assert [site["title"] for site in sites(world)].count("Bakery") == 1
        first_page = console_owner.get(next_page)
        assert "Now create its first page" in text(first_page)
        assert value_of(first_page, "title") == "Bakery"
        path = next_page.partition("?")[0]
        responses = [console_owner.post(path, {"title": HOSTILE, "once": "2"}) for _ in range(2)]
        (editor,) = {response.headers["Location"] for response in responses}
        site = path.split("/")[-2]
        (page,) = pages(world, site)
        assert page["isHome"]
        assert f"/pages/{page['id']}/sections?done=page_created" in editor
        html = html_of(world, page["id"])
        assert html.startswith('<!doctype html>\n<html lang="en">')
        assert "<img" not in html
        shown_page = Api(None).call("GET", "/" + page["url"].split("/", 3)[3] + "/")
        assert shown_page.status == 200
        assert b"<h1>" in shown_page.body

    def test_a_form_sent_again_later_does_not_overwrite_the_page(self, world: World) -> None:
        console_owner, path = world.person("boss"), f"{site_of(world)}/pages"
        editor = console_owner.post(path, {"title": "Menu", "once": "1"}).headers["Location"]
        page = editor.split("/pages/")[1].split("/")[0]
        call_console(world.here.workspace_id, "save_page_html", id=page, html="<p>Mine")
        assert (
            console_owner.post(path, {"title": "Menu", "once": "1"}).headers["Location"] == editor
        )
        assert html_of(world, page) == "<p>Mine"

    def test_an_empty_title_is_refused(self, world: World) -> None:
        console_owner = world.person("boss")
        for path in (sites_of(world), f"{site_of(world)}/pages", site_of(world)):
            answer = console_owner.post(path, {"title": " "})
            assert answer.status == 400
            assert error_beside(answer, "title")


class TestEditing:
    def test_the_html_is_saved_and_the_former_one_stays_a_version(self, world: World) -> None:
        console_owner, path = world.person("boss"), f"{page_of(world)}/html"
        answer = console_owner.post(path, {"html": "<h1>Menu</h1>\r\n<p>Rye"})
        assert answer.headers["Location"] == f"{path}?done=page_saved"
        assert html_of(world) == "<h1>Menu</h1>\n<p>Rye"
        page = text(console_owner.get(path))
        assert ">\n<h1>Menu</h1>\n<p>Rye</textarea>" in page
        versions = call_console(world.here.workspace_id, "list_page_versions", id=world.here.page)
        assert len(versions["versions"]) == 2

    def test_line_ends_of_a_page_stay_as_they_are(self, world: World) -> None:
        save(world, "<h1>Menu</h1>\r\n<p>Rye")
        world.person("boss").post(f"{page_of(world)}/html", {"html": "<h1>Menu</h1>\r\n<p>Oat"})
        assert html_of(world) == "<h1>Menu</h1>\r\n<p>Oat"

    def test_a_page_that_was_saved_meanwhile_is_shown_beside_what_was_typed(
        self, world: World
    ) -> None:
        console_owner, path = world.person("boss"), f"{page_of(world)}/html"
        save(world, "one\ntwo\nthree")
        opened = hidden_fields(console_owner.get(path), "beganFrom", "ifDraft")
        save(world, "one\nTWO\nthree")
        answer = console_owner.post(path, {"html": "one\ntwo\nTHREE", **opened})
        assert answer.status == 409
        page = text(answer)
        assert "Your text is kept as the draft" in page
        assert "<mark>TWO</mark>" in page
        assert "<mark>THREE</mark>" in page
        frames = re.findall('<iframe[^>]+ sandbox srcdoc="([^"]*)"', answer.body.decode())
        assert frames == ["one\nTWO\nthree", "one\ntwo\nTHREE"]
        assert html_of(world) == "one\nTWO\nthree"
        shown = hidden_fields(answer, "ifDraft", "ifHtml")
        answer = console_owner.post(f"{page_of(world)}/draft", shown)
        assert answer.headers["Location"] == f"{page_of(world)}?done=page_saved"
        assert html_of(world) == "one\ntwo\nTHREE"

    @pytest.mark.parametrize("editor", ["html", "sections"])
    def test_an_editor_says_that_frames_need_a_domain(self, editor: str, world: World) -> None:
        console_owner, path = world.person("boss"), f"{page_of(world)}/{editor}"
        assert "have no cookies" not in text(console_owner.get(path))
        save(world, '<iframe src="https://maps.example/embed"></iframe>')
        assert "frames or counters of maps.example" in text(console_owner.get(path))

    def test_the_last_change_is_undone_by_one_button_and_brought_back(self, world: World) -> None:
        console_owner, path = world.person("boss"), page_of(world)
        for html in ("one", "two"):
            answer = console_owner.post(f"{path}/html", {"html": html})
        for shown_path in (answer.headers["Location"], path):
            assert f'action="{path}/undo"' in text(console_owner.get(shown_path))
        assert f'action="{path}/undo"' not in text(console_owner.get(f"{path}/html"))
        for expected in ("one", "two"):
            version = version_in(console_owner.get(path))
            answer = console_owner.post(f"{path}/undo", {"ifVersion": version})
            assert answer.headers["Location"] == f"{path}?done=change_undone"
            assert html_of(world) == expected

    def test_an_undo_does_not_touch_what_another_user_saved_meanwhile(self, world: World) -> None:
        console_owner, path = world.person("boss"), page_of(world)
        version = version_in(console_owner.get(path))
        save(world, "theirs")
        answer = console_owner.post(f"{path}/undo", {"ifVersion": version})
        assert answer.status == 409
        assert "The page has changed since you opened it" in text(answer)
        assert html_of(world) == "theirs"

    def test_a_page_without_versions_has_nothing_to_undo(self, world: World) -> None:
        console_owner = world.person("boss")
        editor = console_owner.post(f"{site_of(world)}/pages", {"title": "New", "once": "9"})
        path = editor.headers["Location"].removesuffix("/sections?done=page_created")
        answer = console_owner.post(f"{path}/undo", {})
        assert "no earlier version" in text(console_owner.get(answer.headers["Location"]))

    def test_a_version_is_shown_as_a_page_in_a_sandbox(self, world: World) -> None:
        html = '<style>h1 { color: red }</style><h1 onclick="alert(1)">Menu</h1>'
        for each in (html, "now"):
            save(world, each)
        versions = call_console(world.here.workspace_id, "list_page_versions", id=world.here.page)
        answer = world.person("boss").get(f"{page_of(world)}/{versions['versions'][0]['id']}")
        frame, _ = re.findall("<iframe[^>]+>", answer.body.decode())
        assert ' loading="lazy" sandbox srcdoc="&lt;style&gt;' in frame
        policy = answer.headers["Content-Security-Policy"]
        assert "style-src 'self' 'unsafe-inline'" in policy
        assert "script-src 'self';" in policy

    def test_the_html_of_a_version_is_compared_line_by_line_if_its_reader_asks_for_it(
        self, world: World
    ) -> None:
        for each in ("<h1>Menu</h1>", "now"):
            save(world, each)
        versions = call_console(world.here.workspace_id, "list_page_versions", id=world.here.page)
        boss, path = world.person("boss"), f"{page_of(world)}/{versions['versions'][0]['id']}"
        (link,) = re.findall(f'href="({path}[?]lines=1)#lines"', boss.get(path).body.decode())
        assert "<mark>&lt;h1&gt;Menu&lt;/h1&gt;</mark>" in boss.get(link).body.decode()

    def test_a_version_shows_the_present_content_of_its_sections(self, world: World) -> None:
        sections = [{"type": "prices"}]
        workspace_id, page = world.here.workspace_id, world.here.page
        call_console(workspace_id, "update_page", id=page, sections=sections)
        save(world, "now")
        versions = call_console(workspace_id, "list_page_versions", id=page)["versions"]
        answer = world.person("boss").get(f"{page_of(world)}/{versions[0]['id']}")
        version, now = re.findall("<iframe[^>]+>", answer.body.decode())
        assert "&lt;table&gt;" in version
        assert 'srcdoc="now"' in now

    def test_a_version_of_sections_has_the_header_and_footer_of_its_business(
        self, world: World
    ) -> None:
        console_owner, path = world.person("boss"), f"{site_of(world)}/pages"
        editor = console_owner.post(path, {"title": "Menu", "once": "1"}).headers["Location"]
        path = editor.removesuffix("?done=page_created")
        for words in ("Rye", "Oat"):
            console_owner.post(path, [("type", "heading"), ("text-0", words)])
        page = path.removesuffix("/sections")
        (version,) = re.findall(rf'href="({page}/\w{{26}})"', text(console_owner.get(page)))[:1]
        frames = re.findall("<iframe[^>]+>", console_owner.get(version).body.decode())
        assert len(frames) == 2
        for frame, words in zip(frames, ("Rye", "Oat"), strict=True):
            assert "svc-bar" in frame
            assert words in frame

    def test_links_to_a_page_lead_past_its_cached_copies(self, world: World) -> None:
        console_owner, paths = world.person("boss"), ("", "/html", "/sections")
        for _ in range(2):
            save(world, f"{html_of(world)}!")
            page = call_console(world.here.workspace_id, "get_page", id=world.here.page)["page"]
            link = f'href="{page["url"]}?v={page["version"]}"'
            for path in paths:
                assert link in console_owner.get(page_of(world) + path).body.decode()
            site = console_owner.get(site_of(world)).body.decode()
            assert link.replace('href="', "").strip('"') in site

    def test_a_long_page_is_not_edited_here(self, world: World) -> None:
        save(world, "x" * (page_editor.MAX_EDITED_BYTES + 1))
        page = text(world.person("boss").get(f"{page_of(world)}/html"))
        assert "larger than 200 KB" in page
        assert "<textarea" not in page

    def test_html_is_shown_as_text(self, world: World) -> None:
        save(world, f"</textarea>{HOSTILE}")
        page = world.person("boss").get(f"{page_of(world)}/html").body.decode()
        assert "&lt;/textarea&gt;" in page
        assert "<img" not in page


class TestSettings:
    def test_a_site_is_hidden_and_shown_again(self, world: World) -> None:
        console_owner, path = world.person("boss"), site_of(world)
        url = "/" + sites(world)[0]["url"].split("/", 3)[3] + "/"
        assert (
            console_owner.post(path, {"title": "Shop"}).headers["Location"]
            == f"{path}?done=site_saved"
        )
        assert Api(None).call("GET", url).status == 404
        assert "View site" not in text(console_owner.get(path))
        console_owner.post(path, {"title": "Shop", "active": "on"})
        assert Api(None).call("GET", url).status == 200
        assert value_of(console_owner.get(path), "title") == "Shop"

    def test_a_suspended_site_says_so(self, world: World) -> None:
        call_operator("suspend_site", id=world.here.site)
        assert "suspended this site" in text(world.person("boss").get(site_of(world)))


class TestDeleting:
    def test_a_page_is_deleted_and_can_be_restored(self, world: World) -> None:
        console_owner, path = world.person("boss"), f"{page_of(world)}/delete"
        assert "Can be restored until" in text(console_owner.get(path))
        for _ in range(2):
            answer = console_owner.post(path)
            assert answer.headers["Location"] == f"{site_of(world)}?done=page_deleted"
        assert pages(world) == []
        console_owner.post(f"{site_of(world)}/deleted-pages/{world.here.page}")
        assert [page["id"] for page in pages(world)] == [world.here.page]

    def test_a_home_page_with_others_is_not_deleted(self, world: World) -> None:
        fields = {"projectId": world.here.site, "title": "Second"}
        call_console(world.here.workspace_id, "create_page", **fields)
        answer = world.person("boss").post(f"{page_of(world)}/delete")
        assert answer.status == 409
        assert "home page of the site" in text(answer)
        assert len(pages(world)) == 2

    def test_a_site_says_what_is_deleted_with_it_and_can_be_restored(self, world: World) -> None:
        console_owner, path = world.person("boss"), f"{site_of(world)}/delete"
        page = text(console_owner.get(path))
        assert "<dt>Pages</dt><dd>1</dd>" in page
        assert "Can be restored until" in page
        for _ in range(2):
            answer = console_owner.post(path)
            assert answer.headers["Location"] == f"{sites_of(world)}?done=site_deleted"
        assert sites(world) == []
        console_owner.post(f"{world.here.path}/deleted-sites/{world.here.site}")
        assert [site["id"] for site in sites(world)] == [world.here.site]


def sections_of(world: World) -> Any:
    return call_console(world.here.workspace_id, "get_page", id=world.here.page)["page"]["sections"]


def test_a_page_is_made_of_sections(world: World) -> None:
    boss, path = world.person("boss"), f"{world.here.path}/sites/{world.here.site}/pages"
    path = f"{path}/{world.here.page}/sections"
    assert "Sections are added at its end" in text(boss.get(path))
    form: list[tuple[str, str]] = []
    for place, kind in enumerate(("heading", "photo", "form", "prices")):
        page = text(boss.post(path, [*form, ("action", f"add:{kind}")]))
        assert "not saved yet" in page
        form.append(("type", kind))
        assert page.count('name="type"') == place + 1
    answer = boss.post(path, [*form, ("text-0", " ")])
    assert answer.status == 400
    assert "Type something" in error_beside(answer, "text-0")
    form += [("text-0", "Rye"), ("form-2", world.here.form), ("text-1", "The hall")]
    answer = boss.post(path, form)
    assert "Choose a photo" in error_beside(answer, "photo-1")
    photo = ("photo-1", "hall.jpg", saved(drawn(), "JPEG"))
    page = text(boss.post(path, [*form, ("action", "up:1")], files=[photo]))
    (file,) = re.findall(r'name="photo-0" value="(\w+)"', page)
    answer = boss.post(path, [*form, ("photo-1", file)])
    assert answer.headers["Location"] == f"{path}?done=page_saved"
    kinds = [
        (section["type"], section["text"], section["fileId"]) for section in sections_of(world)
    ]
    assert kinds == [
        ("heading", "Rye", None),
        ("photo", "The hall", file),
        ("form", None, None),
        ("prices", None, None),
    ]
    page = text(boss.get(path))
    assert "/thumbnail/hall.jpg" in page
    assert f'<option value="{world.here.form}" selected>' in page


def test_only_html_of_the_author_is_said_to_precede_the_sections(world: World) -> None:
    boss, path = world.person("boss"), f"{site_of(world)}/pages"
    editor = boss.post(path, {"title": "Prices", "once": "1"}).headers["Location"]
    assert "HTML of its own" not in text(boss.get(editor))
    assert "HTML of its own" in text(boss.get(f"{path}/{world.here.page}/sections"))


def test_the_only_form_of_a_workspace_is_chosen_for_a_section(world: World) -> None:
    boss, path = world.person("boss"), f"{page_of(world)}/sections"
    editor = text(boss.post(path, {"action": "add:form"}))
    assert "Choose a form" not in editor
    assert f'<option value="{world.here.form}"' in editor
    boss.post(f"{world.here.path}/forms", {"template": "order", "once": "1"})
    assert "Choose a form" in text(boss.post(path, {"action": "add:form"}))


def test_sections_that_somebody_else_saved_are_not_lost(world: World) -> None:
    boss, home = world.person("boss"), world.here.workspace_id
    path = f"{world.here.path}/sites/{world.here.site}/pages/{world.here.page}/sections"
    seen = text(boss.get(path)).split('name="seen" value="')[1].split('"')[0]
    theirs = [{"type": "heading", "text": "Theirs"}]
    call_console(home, "update_page", id=world.here.page, sections=theirs)
    form = [("type", "heading"), ("text-0", "Mine"), ("seen", seen)]
    answer = boss.post(path, form)
    assert answer.status == 409
    assert "Heading Theirs" in text(answer)
    assert sections_of(world)[0]["text"] == "Theirs"
    boss.post(path, form[:2])
    assert sections_of(world)[0]["text"] == "Mine"


def test_a_photo_that_is_refused_is_named_beside_its_section(world: World) -> None:
    boss = world.person("boss")
    path = f"{world.here.path}/sites/{world.here.site}/pages/{world.here.page}/sections"
    heic = ("photo-0", "a.heic", b"\x00\x00\x00\x18ftypheic" + bytes(40))
    answer = boss.post(path, [("type", "photo")], files=[heic])
    assert answer.status == 400
    assert "JPEG, PNG or WebP" in error_beside(answer, "photo-0")


def test_a_domain_shows_its_state_its_records_and_the_next_step(world: World) -> None:
    boss, path = world.person("boss"), site_of(world)
    answer = boss.post(f"{path}/domain", {"domain": "https://bakery"})
    assert answer.status == 400
    assert "www.example.com" in error_beside(answer, "domain")
    assert value_of(answer, "domain") == "https://bakery"
    answer = boss.post(f"{path}/domain", {"domain": "www.bakery.example"})
    assert answer.headers["Location"] == f"{path}?done=domain_checked"
    page = text(boss.get(path))
    (record,) = next(s for s in sites(world) if s["id"] == world.here.site)["domain"]["records"]
    assert record["host"] in page
    assert record["value"] in page
    assert "Add the records below" in page
    boss.post(f"{path}/domain", {"domain": "www.bakery.example", "action": "remove"})
    assert "Connect the domain" in text(boss.get(path))
