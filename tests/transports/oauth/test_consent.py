"""Signing in on the way to consent, the consent page, and its redirect."""

import re
from urllib.parse import quote

import pytest

from chalicelib.domains.identity.store import connections
from chalicelib.domains.oauth.rules import registration
from tests.conftest import PASSWORD, Answer, Time, all_rows, call_operator
from tests.factories.console import HOSTILE, Person, World
from tests.factories.oauth import REDIRECT_URI
from tests.factories.oauth_http import (
    AUTHORIZE,
    BASE,
    DOCUMENT,
    REQUEST,
    allow,
    content,
    document,
    exchange_form,
    path,
    returned,
    send_form,
)
from tests.fakes.internet import Internet


def ticked(html: bytes) -> set[str]:
    """Return the scopes whose boxes are ticked."""
    return set(re.findall(r'name="scopes" value="([a-z:]+)" checked', html.decode()))


def offered_scopes(html: bytes) -> set[str]:
    return set(re.findall(r'name="scopes" value="([a-z:]+)"', html.decode()))


def radios(html: bytes) -> dict[str, str]:
    """Return the attributes of each workspace's radio button, by slug."""
    inputs = re.findall(r'name="workspace" value="([^"]+)"([^>]*)>', html.decode())
    return {slug: attributes.strip() for slug, attributes in inputs}


def review(person: Person, world: World) -> Answer:
    """Send the form as a browser without script does."""
    fields = {"workspace": world.here.slug, "scopes": "crm:read", "decision": "allow"}
    return person.post(path(), {**fields, "review": "yes"})


class TestSignIn:
    def test_signing_in_leads_back_to_consent(self, world: World) -> None:
        visitor, consent_path = Person("boss@example.com"), path()
        page = visitor.get(consent_path)
        assert page.status == 200
        assert b"An app requests access" in page.body
        (next_path,) = re.findall(r'name="next" value="([^"]*)"', page.body.decode())
        fields = {"email": visitor.email, "password": PASSWORD}
        fields["next"] = next_path.replace("&amp;", "&").replace("&#39;", "'")
        wrong = visitor.post("/console/sign-in", fields | {"password": "wrong"})
        assert (wrong.status, next_path in wrong.body.decode()) == (401, True)
        answer = visitor.post("/console/sign-in", fields)
        assert answer.status == 303
        consent = visitor.get(answer.headers["Location"])
        assert "“Claude” requests access" in consent.body.decode()
        for response in (page, wrong, answer, consent):
            assert response.headers["Cross-Origin-Opener-Policy"] == "unsafe-none"
            assert "form-action" not in response.headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
            assert response.headers["X-Frame-Options"] == "DENY"
            assert response.headers["Cache-Control"] == "no-store"

    def test_consent_with_another_account_begins_by_signing_out(self, world: World) -> None:
        console_owner = world.person("boss")
        page = console_owner.get(path()).body.decode()
        assert "boss@example.com" in page
        pattern = r'action="/console/sign-out">.*?name="next" value="([^"]*)"'
        form = re.search(pattern, page, re.DOTALL)
        assert form
        answer = console_owner.post("/console/sign-out", {"next": form[1].replace("&amp;", "&")})
        assert answer.headers["Cross-Origin-Opener-Policy"] == "unsafe-none"
        sign_in_page = console_owner.get(answer.headers["Location"])
        assert b"An app requests access" in sign_in_page.body

    @pytest.mark.parametrize(
        "next_path",
        [
            "https://evil.example/oauth/authorize?a=1",
            "//evil.example/oauth/authorize?a=1",
            "/oauth/authorize",
            "/oauth/authorize/../../x?a=1",
            "/oauth/token?a=1",
            "/oauth/authorize?a=1#x",
            "/oauth/authorize?a=1\r\nSet-Cookie: x=1",
            "/oauth/authorize?a=\\evil",
            f"/oauth/authorize?a={'x' * 8_000}",
            "/oauth/authorize?a=ё",
        ],
    )
    def test_signing_in_never_leads_elsewhere(self, next_path: str, world: World) -> None:
        visitor = Person("boss@example.com")
        page = visitor.get(f"/console/sign-in?next={quote(next_path)}")
        assert page.headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert "form-action 'self'" in page.headers["Content-Security-Policy"]
        answer = visitor.start_session(next=next_path)
        assert answer.headers["Location"] == "/console"
        signed_out = visitor.post("/console/sign-out", {"next": next_path})
        assert signed_out.headers["Location"] == "/console/sign-in?done=signed_out"

    def test_a_request_of_nearly_eight_kilobytes_survives_signing_in(self, world: World) -> None:
        visitor, consent_path = Person("boss@example.com"), path(state="ü" * 1_200)
        assert len(consent_path) > 7_000
        assert visitor.get(consent_path).status == 200
        answer = visitor.start_session(next=consent_path)
        assert answer.headers["Location"] == consent_path
        assert returned(allow(visitor, consent_path, world.here.slug))["state"] == "ü" * 1_200

    def test_a_longer_request_is_refused(self, world: World) -> None:
        page = Person("boss@example.com").get(path(state="ü" * 1_400))
        assert page.status == 400
        assert b"8,000 characters" in page.body

    def test_somebody_who_is_signed_in_is_led_on(self, world: World) -> None:
        answer = world.person("boss").get(f"/console/sign-in?next={quote(path())}")
        assert answer.headers["Location"] == path()


class TestPage:
    def test_page_shows_who_asks_and_where_access_goes(self, world: World) -> None:
        html = world.person("boss").get(path()).body.decode()
        assert "client.example" in html
        assert "The app chose this name itself" in html
        assert "a program on this computer" not in html

    @pytest.mark.parametrize(
        ("uri", "shown_name", "warning"),
        [
            ("http://127.0.0.1:3118/callback", "127.0.0.1", "a program on this computer"),
            ("http://localhost/callback", "localhost", "a program on this computer"),
            ("cursor://anysphere.cursor-mcp/oauth", "cursor:", "the app on this device"),
        ],
    )
    def test_page_warns_of_programs_on_the_device(
        self, uri: str, shown_name: str, warning: str, world: World
    ) -> None:
        metadata = {"client_name": "Tool", "redirect_uris": [uri]}
        consent_path = path(
            client_id=registration.register(metadata)["client_id"], redirect_uri=uri
        )
        console_owner = world.person("boss")
        html = console_owner.get(consent_path).body.decode()
        assert f"<code>{shown_name}</code>" in html
        assert warning in html
        answer = allow(console_owner, consent_path, world.here.slug)
        assert answer.headers["Location"].startswith(f"{uri}?code=wsac_")

    def test_a_client_with_a_document_is_shown_by_its_host(
        self, net: Internet, world: World
    ) -> None:
        server = net.serve(DOCUMENT, document())
        consent_path = path(client_id=DOCUMENT)
        visitor = Person("boss@example.com")
        visitor.get(consent_path)
        assert server.requests == []
        visitor.start_session()
        html = visitor.get(consent_path).body.decode()
        assert "chat.example.com" in html
        assert "The app chose this name itself" not in html
        code = returned(allow(visitor, consent_path, world.here.slug))["code"]
        tokens = content(send_form("token", **exchange_form(code, client_id=DOCUMENT)))
        assert tokens["token_type"] == "Bearer"
        assert len(server.requests) == 1

    def test_hostile_names_are_shown_as_text(self, world: World) -> None:
        metadata = {"client_name": HOSTILE[:100], "redirect_uris": [REDIRECT_URI]}
        consent_path = path(client_id=registration.register(metadata)["client_id"], state=HOSTILE)
        answer = world.person("boss").get(consent_path)
        assert answer.status == 200
        assert b"<img" not in answer.body
        assert b"<script>alert" not in answer.body

    def test_workspaces_are_listed_with_the_reason_why_not(self, world: World) -> None:
        console_owner = world.person("boss")
        only = radios(console_owner.get(path()).body)
        assert only == {world.here.slug: "required checked"}
        free = call_operator(
            "create_workspace", owner=console_owner.email, name="Free", plan="free"
        )
        also = call_operator(
            "create_workspace", owner=console_owner.email, name="Also", plan="enterprise"
        )
        answer = console_owner.get(path())
        assert radios(answer.body) == {
            world.here.slug: "required",
            also["slug"]: "required",
            free["slug"]: "disabled",
        }
        assert b"Connecting apps requires the Business plan" in answer.body

    def test_a_plain_member_can_only_deny(self, world: World) -> None:
        member = world.person("member")
        html = member.get(path()).body
        assert radios(html) == {world.here.slug: "disabled"}
        assert b"Only the owner and managers" in html
        assert b'value="allow"' not in html
        assert allow(member, path(), world.here.slug).status == 400
        assert returned(member.post(path(), {"decision": "deny"}))["error"] == "access_denied"

    def test_boxes_offer_what_the_client_asks_for(self, world: World) -> None:
        console_owner = world.person("boss")
        html = console_owner.get(
            path(scope="crm:read crm:write agents:write blog:read claudeai")
        ).body
        assert offered_scopes(html) == {"crm:read", "crm:write", "agents:write"}
        assert ticked(html) == {"crm:read"}
        everything = console_owner.get(path(scope=None)).body
        assert len(offered_scopes(everything)) == 16
        assert ticked(everything) == {
            scope for scope in offered_scopes(everything) if ":read" in scope
        }
        assert ticked(console_owner.get(path(scope="agents:write")).body) == set()
        assert len(offered_scopes(console_owner.get(path(scope="*:read *:write")).body)) == 16

    def test_rights_that_the_app_has_already_are_ticked(self, world: World) -> None:
        console_owner, asked_scopes = world.person("boss"), "crm:read crm:write products:write"
        code = returned(allow(console_owner, path(), world.here.slug, "crm:write"))["code"]
        send_form("token", **exchange_form(code))
        assert ticked(console_owner.get(path(scope=asked_scopes)).body) == {"crm:read", "crm:write"}
        assert ticked(world.person("manager").get(path(scope=asked_scopes)).body) == {"crm:read"}
        other = registration.register({"redirect_uris": [REDIRECT_URI], "client_name": "Other"})
        page = console_owner.get(path(scope=asked_scopes, client_id=other["client_id"]))
        assert ticked(page.body) == {"crm:read"}

    def test_enter_denies(self, world: World) -> None:
        """A browser presses the first button of a form."""
        for page in (world.person("boss").get(path()), review(world.person("boss"), world)):
            *_, form = page.body.decode().split("<form ")
            first = re.search(r"<button [^>]*>", form)
            assert first
            assert 'name="decision" value="deny"' in first[0]

    def test_without_script_a_second_page_asks_again(self, world: World) -> None:
        console_owner, count_before = world.person("boss"), len(all_rows())
        page = review(console_owner, world)
        assert page.status == 200
        assert len(all_rows()) == count_before
        assert b"Nothing is allowed yet." in page.body
        assert b"Leads and clients: read" in page.body
        hidden = re.findall(
            r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.body.decode()
        )
        fields = [field for field in hidden if field[0] in {"workspace", "scopes", "review"}]
        assert fields == [("workspace", world.here.slug), ("scopes", "crm:read")]
        got = returned(console_owner.post(path(), [*fields, ("decision", "allow")]))
        assert content(send_form("token", **exchange_form(got["code"])))["scope"] == "crm:read"

    def test_an_incomplete_form_is_not_reviewed(self, world: World) -> None:
        answer = world.person("boss").post(path(), {"decision": "allow", "review": "yes"})
        assert answer.status == 400
        assert b"Choose a workspace." in answer.body

    def test_presets_work_without_script(self, world: World) -> None:
        console_owner = world.person("boss")
        form = {"preset": "read", "workspace": world.here.slug, "scopes": "crm:write"}
        answer = console_owner.post(path(), form)
        assert answer.status == 200
        assert ticked(answer.body) == {"projects:read", "crm:read"}
        assert "checked" in radios(answer.body)[world.here.slug]

    def test_an_incomplete_form_is_shown_again(self, world: World) -> None:
        console_owner = world.person("boss")
        answer = console_owner.post(path(), {"decision": "allow"})
        assert answer.status == 400
        assert b"Choose a workspace." in answer.body
        assert b"Choose at least one right." in answer.body
        assert ticked(answer.body) == set()

    def test_a_full_workspace_is_explained(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connections, "MAX_LIVE", 0)
        answer = allow(world.person("boss"), path(), world.here.slug)
        assert answer.status == 409
        assert b"The maximum number of apps" in answer.body
        assert ticked(answer.body) == set(REQUEST["scope"].split())

    def test_admins_may_grant_the_blogs_scopes(self, world: World) -> None:
        call_operator("create_account", email="a@example.com", password=PASSWORD, role="admin")
        call_operator("create_workspace", owner="a@example.com", name="Blog")
        admin = Person("a@example.com")
        admin.start_session()
        assert offered_scopes(admin.get(path(scope="blog:write")).body) == {"blog:write"}

    def test_an_api_key_gives_no_access_to_the_page(self, world: World) -> None:
        console_owner = world.person("boss")
        assert console_owner.get(path(), Authorization=f"Bearer {world.here.token}").status == 403
        assert console_owner.get(path(state=world.here.token)).status == 403

    def test_consent_is_shown_each_time(self, world: World) -> None:
        console_owner = world.person("boss")
        allow(console_owner, path(), world.here.slug)
        for prompt in (None, "none"):
            assert console_owner.get(path(prompt=prompt)).status == 200

    def test_the_path_accepts_no_other_method(self, world: World) -> None:
        assert world.person("boss").request("DELETE", AUTHORIZE).status == 405
        assert world.person("boss").request("HEAD", path()).status == 200


class TestDecision:
    def test_client_gets_a_code_that_opens_the_tool_server(self, world: World) -> None:
        got = returned(allow(world.person("boss"), path(), world.here.slug, "crm:read"))
        assert set(got) == {"code", "state", "iss"}
        assert (got["state"], got["iss"]) == (REQUEST["state"], BASE)
        assert content(send_form("token", **exchange_form(got["code"])))["scope"] == "crm:read"

    def test_scopes_beyond_the_request_are_not_granted(self, world: World) -> None:
        form = ("crm:read", "agents:write", "blog:write", "*:write")
        got = returned(allow(world.person("boss"), path(), world.here.slug, *form))
        assert content(send_form("token", **exchange_form(got["code"])))["scope"] == "crm:read"

    def test_a_denial_reaches_the_client(self, world: World) -> None:
        got = returned(world.person("boss").post(path(), {"decision": "deny"}))
        assert got.pop("error_description")
        assert got == {"error": "access_denied", "state": REQUEST["state"], "iss": BASE}

    def test_two_answers_to_one_form_both_work(self, world: World) -> None:
        console_owner = world.person("boss")
        codes = [returned(allow(console_owner, path(), world.here.slug))["code"] for _ in "12"]
        assert codes[0] != codes[1]
        assert {send_form("token", **exchange_form(code)).status for code in codes} == {200}

    def test_another_persons_workspace_cannot_be_chosen(self, world: World) -> None:
        console_owner, count_before = world.person("boss"), len(all_rows())
        answer = allow(console_owner, path(), world.there.slug)
        assert answer.status == 400
        assert len(all_rows()) == count_before

    @pytest.mark.parametrize("csrf", ["", "0" * 64])
    def test_a_form_of_another_site_is_refused(self, csrf: str, world: World) -> None:
        console_owner = world.person("boss")
        form = {"decision": "allow", "workspace": world.here.slug, "scopes": "crm:read"}
        assert console_owner.post(path(), form, csrf).status == 403
        assert console_owner.post(path(), form, Sec_Fetch_Site="cross-site").status == 403
        assert console_owner.post(path(), form, Origin="https://evil.example").status == 403

    def test_a_form_of_an_ended_session_leads_to_sign_in(self, world: World, time: Time) -> None:
        console_owner = world.person("boss")
        time.pass_by(hours=13)
        answer = allow(console_owner, path(), world.here.slug)
        assert (answer.status, "Location" in answer.headers) == (200, False)
        assert b"An app requests access" in answer.body

    def test_the_query_of_a_registered_address_is_kept(self, world: World) -> None:
        uri = "https://client.example/callback?tenant=1"
        metadata = {"client_name": "Tool", "redirect_uris": [uri]}
        consent_path = path(
            client_id=registration.register(metadata)["client_id"], redirect_uri=None
        )
        got = returned(allow(world.person("boss"), consent_path, world.here.slug))
        assert got["tenant"] == "1"
        assert "code" in got
