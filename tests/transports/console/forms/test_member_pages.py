"""Pages of members, of the workspace's settings and of one's own account."""

import re
from typing import ClassVar

import pytest

from chalicelib.core.errors import ValidationError
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.lib.accents import COLOURS
from chalicelib.transports.web import assets
from tests.conftest import PASSWORD, call_console, call_operator
from tests.factories.console import Person, World
from tests.factories.images import drawn, saved
from tests.factories.people import read_rows
from tests.transports.console.forms.helpers import error_beside, text, value_of

SETTINGS = {"name": "Salon", "timezone": "Europe/Berlin", "country": "DE"}


def role_of(world: World, name: str) -> str | None:
    account = accounts.require_by_email(f"{name}@example.com")
    membership = workspaces.membership(account.id, workspace_id=world.here.workspace_id)
    return membership.role if membership else None


def page_of(world: World, name: str) -> str:
    return f"{world.here.path}/members/{accounts.require_by_email(f'{name}@example.com').id}"


class TestMembers:
    def test_everyone_sees_the_members_and_managers_see_invitations(self, world: World) -> None:
        for name in ("boss", "manager", "member"):
            page = text(world.person(name).get(f"{world.here.path}/members"))
            for role in ("boss", "manager", "member"):
                assert f"{role}@example.com" in page
            assert ("Create invitation" in page) is (name != "member")
            assert ("?leave=" in page) is (name != "boss")

    @pytest.mark.parametrize("name", ["boss", "manager", "member"])
    @pytest.mark.parametrize("target", ["boss", "manager", "member"])
    def test_a_page_offers_what_the_role_allows(self, world: World, name: str, target: str) -> None:
        answer = world.person(name).get(page_of(world, target))
        if name == "member":
            assert answer.status == 403
            return
        page = text(answer)
        ranks = ["member", "manager", "boss"]
        assert (">Remove</button>" in page) is (ranks.index(name) > ranks.index(target))
        assert ('name="role"' in page) is (name == "boss" and target != "boss")

    @pytest.mark.parametrize("name", ["boss", "manager", "member"])
    @pytest.mark.parametrize("form", [{"role": "manager"}, {"role": "member"}, {}])
    @pytest.mark.parametrize("target", ["boss", "manager", "member"])
    def test_forms_that_a_page_does_not_offer_change_nothing(
        self, world: World, name: str, target: str, form: dict[str, str]
    ) -> None:
        ranks = ["member", "manager", "boss"]
        person, rows_before = world.person(name), read_rows()
        answer = person.post(page_of(world, target), form)
        may = name == "boss" and target != "boss"
        may = may or (not form and name == "manager" and target == "member")
        if may:
            assert answer.status == 303
            assert role_of(world, target) == form.get("role")
        else:
            assert answer.status in {403, 409}
            assert {k: v for k, v in read_rows().items() if "SESSION" not in k} == {
                k: v for k, v in rows_before.items() if "SESSION" not in k
            }
        assert ranks

    def test_a_member_who_is_removed_meanwhile_is_not_found(self, world: World) -> None:
        console_owner, path = world.person("boss"), page_of(world, "member")
        assert console_owner.post(path, {}).headers["Location"].endswith("?done=member_removed")
        assert console_owner.post(path, {}).status == 404
        assert console_owner.get(path).status == 404

    def test_many_members_are_searched_and_paged(self, world: World) -> None:
        for number in range(60):
            email = f"m{number:02}@example.com"
            call_operator(
                "create_account", email=email, password=PASSWORD, name=f"Mara {number:02}"
            )
            call_operator("add_member", workspaceId=world.here.workspace_id, email=email)
        console_owner, path = world.person("boss"), f"{world.here.path}/members"
        first, second = text(console_owner.get(path)), text(console_owner.get(f"{path}?page=2"))
        assert first.count('class="row" href') == 50
        assert second.count('class="row" href') == 13
        search_page = text(console_owner.get(f"{path}?q=mara+07"))
        assert search_page.count('class="row" href') == 1
        assert "m07@example.com" in search_page
        assert "Nothing found" in text(console_owner.get(f"{path}?q=zzz"))


class TestLeaving:
    def test_leaving_asks_first_and_then_ends_the_access(self, world: World) -> None:
        member = world.person("member")
        page = text(member.get(f"/console/account?leave={world.here.slug}"))
        assert "You lose access immediately" in page
        assert role_of(world, "member") == "member"
        answer = member.post("/console/account", {"leave": world.here.slug})
        assert answer.headers["Location"] == "/console/account?done=workspace_left"
        assert role_of(world, "member") is None
        assert member.get(world.here.path).status == 404

    def test_the_owner_cannot_leave(self, world: World) -> None:
        console_owner = world.person("boss")
        page = text(console_owner.get(f"/console/account?leave={world.here.slug}"))
        assert 'name="leave"' not in page
        assert console_owner.post("/console/account", {"leave": world.here.slug}).status == 409
        assert role_of(world, "boss") == "owner"

    def test_other_workspaces_cannot_be_left(self, world: World) -> None:
        member = world.person("member")
        for slug in (world.there.slug, "never"):
            assert member.get(f"/console/account?leave={slug}").status == 404
            assert member.post("/console/account", {"leave": slug}).status == 404


class TestSettings:
    def test_settings_are_saved(self, world: World) -> None:
        console_owner, path = world.person("boss"), f"{world.here.path}/settings"
        assert (
            console_owner.post(path, SETTINGS).headers["Location"] == f"{path}?done=settings_saved"
        )
        workspace = workspaces.get(world.here.workspace_id)
        assert [getattr(workspace, name) for name in SETTINGS] == list(SETTINGS.values())
        page = text(console_owner.get(path))
        assert "Germany" in page
        assert "Business plan" in page

    @pytest.mark.parametrize(
        ("city", "zone"), [("Kyiv", "Europe/Kyiv"), ("Екатеринбург", "Asia/Yekaterinburg")]
    )
    def test_a_city_becomes_its_zone(self, world: World, city: str, zone: str) -> None:
        boss, path = world.person("boss"), f"{world.here.path}/settings"
        assert boss.post(path, SETTINGS | {"timezone": city}).status == 303
        assert workspaces.get(world.here.workspace_id).timezone == zone

    def test_the_zones_of_the_workspaces_country_are_offered(self, world: World) -> None:
        boss, path = world.person("boss"), f"{world.here.path}/settings"
        boss.post(path, SETTINGS)
        for page in (path, f"{world.here.path}/staff/new"):
            offered = re.search(r'<datalist id="zones">(.*?)</datalist>', text(boss.get(page)))
            assert offered, page
            zones_shown = offered[1].replace("<option>", " ").split()
            assert zones_shown == ["Europe/Berlin", "Europe/Busingen"], page

    @pytest.mark.parametrize(
        ("field", "value"), [("name", "x" * 201), ("name", " "), ("timezone", "Mars/Base")]
    )
    def test_a_refused_form_keeps_what_was_typed(
        self, world: World, field: str, value: str
    ) -> None:
        console_owner, path = world.person("boss"), f"{world.here.path}/settings"
        answer = console_owner.post(path, SETTINGS | {field: value})
        assert answer.status == 400
        assert error_beside(answer, field)
        assert value_of(answer, field) == value.strip()
        other = "timezone" if field == "name" else "name"
        assert value_of(answer, other) == SETTINGS[other]
        assert workspaces.get(world.here.workspace_id).country == "RU"


class TestLanguage:
    def test_the_accounts_language_is_used_on_all_pages_and_failures(self, world: World) -> None:
        console_owner = world.person("boss")
        console_owner.post("/console/account", {"name": "Ada", "language": "ru"})
        for path in (
            "/console/account",
            world.here.path,
            f"{world.here.path}/keys",
            "/console/w/x",
        ):
            assert 'lang="ru"' in text(console_owner.get(path, accept_language="en"))
        other = Person("boss@example.com", world.person("boss").token)
        assert 'lang="ru"' in text(other.get(world.here.path, accept_language="en"))
        member = world.person("member").get(world.here.path, accept_language="en")
        assert '<html lang="en">' in text(member)

    def test_the_foot_of_a_page_switches_the_language_and_returns(self, world: World) -> None:
        console_owner, path = world.person("boss"), f"{world.here.path}/keys"
        assert f'name="back" value="{path}"' in text(console_owner.get(path))
        answer = console_owner.post("/console/account", {"language": "ru", "back": path})
        assert answer.headers["Location"] == path
        assert '<html lang="ru">' in text(console_owner.get(path, accept_language="en"))
        answer = console_owner.post(
            "/console/account", {"language": "en", "back": "//evil.example"}
        )
        assert answer.headers["Location"] == "/console"

    def test_a_guest_chooses_a_language_by_a_link(self, world: World) -> None:
        visitor = Person("boss@example.com")
        page = text(visitor.get("/console/sign-in?next=/console/account", accept_language="en"))
        assert 'href="?next=%2Fconsole%2Faccount&lang=ru"' in page
        page = text(visitor.get("/console/sign-in?lang=ru", accept_language="en"))
        assert '<html lang="ru">' in page
        failed = visitor.start_session("wrong", lang="ru")
        assert '<html lang="ru">' in text(failed)
        assert accounts.require_by_email("boss@example.com").language is None
        visitor.start_session(lang="ru")
        assert accounts.require_by_email("boss@example.com").language == "ru"
        visitor.post("/console/sign-out")
        visitor.token = ""
        visitor.start_session(lang="en")
        assert accounts.require_by_email("boss@example.com").language == "ru"

    @pytest.mark.parametrize("code", ["", "de", "RU", "ru-RU", "<script>", "ru\r\nEvil: 1"])
    def test_an_unknown_language_counts_as_none(self, world: World, code: str) -> None:
        answer = Person("x").request("GET", "/console/sign-in", accept_language="en")
        assert answer.status == 200
        failed = Person("boss@example.com").start_session("wrong", lang=code)
        assert '<html lang="en">' in text(failed)


class TestWhatClientsSee:
    SEEN_BY_CLIENTS: ClassVar[dict[str, str]] = {
        "address": "1 Main Street",
        "phone": "+7 900 000-00-00",
        "accent": "teal",
    }

    def test_the_booking_page_has_logo_and_colour_of_the_settings(self, world: World) -> None:
        boss, path = world.person("boss"), f"{world.here.path}/settings"
        logo = [("logoUrlFile", "logo.jpg", saved(drawn(), "JPEG"))]
        assert boss.post(path, SETTINGS | self.SEEN_BY_CLIENTS, files=logo).status == 303
        page = boss.get(f"/book/{world.here.slug}").body.decode()
        assert assets.style_url("booking-teal") in page
        url = workspaces.get(world.here.workspace_id).logo_url
        assert url.endswith("/logo.jpg")
        assert f'src="{url}"' in page
        assert f'src="{url}"' in text(boss.get(path))
        boss.post(path, SETTINGS | self.SEEN_BY_CLIENTS)
        assert workspaces.get(world.here.workspace_id).logo_url == url
        cleared = dict.fromkeys(self.SEEN_BY_CLIENTS, "") | {"removePhoto": "yes"}
        boss.post(path, SETTINGS | cleared)
        plain_page = boss.get(f"/book/{world.here.slug}").body.decode()
        assert assets.style_url("booking") in plain_page
        assert url not in plain_page

    def test_a_wrong_value_is_reported_beside_its_field(self, world: World) -> None:
        boss, path = world.person("boss"), f"{world.here.path}/settings"
        answer = boss.post(path, SETTINGS | {"address": "x" * 301})
        assert answer.status == 400
        assert error_beside(answer, "address")

    def test_a_file_that_is_no_image_is_refused_as_a_logo(self, world: World) -> None:
        boss, path = world.person("boss"), f"{world.here.path}/settings"
        answer = boss.post(path, SETTINGS, files=[("logoUrlFile", "prices.txt", b"rye 120")])
        assert answer.status == 400
        assert "Choose a photo" in error_beside(answer, "logoUrlFile")

    @pytest.mark.parametrize("url", ["javascript:alert(1)", "logo.png", "http://127.0.0.1/a.png"])
    def test_an_unsafe_url_is_refused_as_a_logo(self, world: World, url: str) -> None:
        with pytest.raises(ValidationError, match="logoUrl"):
            call_console(world.here.workspace_id, "set_workspace", logoUrl=url)

    def test_every_accent_has_its_colours_in_the_style_sheet(self) -> None:
        for name, (light, dark) in COLOURS.items():
            sheet = assets.style_sheet(f"booking-{name}").decode().replace(" ", "")
            light_rules, _, dark_rules = sheet.rpartition("@media(prefers-color-scheme:dark)")
            assert light_rules.rpartition("--accent:")[2].startswith(light)
            assert dark_rules.partition("--accent:")[2].startswith(dark)
