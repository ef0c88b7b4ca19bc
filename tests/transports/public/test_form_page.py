"""The page of a form without a site, over HTTP."""

import base64
import hashlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.ids import new_id
from tests.conftest import Answer, Api, Owner, call_console, call_operator
from tests.factories.console import FORM

HOSTILE = "<script>alert(1)</script>"


def make(owner: Owner, **fields: Any) -> Any:
    phone = {"name": "phone", "label": "Phone", "type": "phone", "required": True}
    arguments = {"title": "Call me", "fields": [phone], **fields}
    return call_console(owner.workspace.id, "create_form", **arguments)["form"]


def path_of(form: Any) -> str:
    return "/form/" + form["pageUrl"].rpartition("/form/")[2]


@pytest.mark.parametrize(
    ("title", "label", "lang", "button"),
    [("Call me", "Phone", "en", "Send"), ("Перезвоните мне", "Телефон", "ru", "Отправить")],
)
def test_a_form_has_a_page_in_its_own_language(
    owner: Owner, title: str, label: str, lang: str, button: str
) -> None:
    form = make(owner, title=title, fields=[{"name": "phone", "label": label, "type": "phone"}])
    page = Api(None).call("GET", path_of(form), headers={"Accept-Language": "de"})
    html = page.body.decode()
    assert page.status == 200
    assert f'<html lang="{lang}">' in html
    assert f"<h1>{title}</h1>" in html
    assert f"<button>{button}</button>" in html
    header = html.partition("<header>")[2].partition("</header>")[0]
    assert owner.workspace.name in header
    assert f'action="{form["submitUrl"]}"' in html


def test_the_page_runs_only_the_script_of_the_embed_code(owner: Owner) -> None:
    page = Api(None).call("GET", path_of(make(owner, title=HOSTILE)))
    html, policy = page.body.decode(), page.headers["Content-Security-Policy"]
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert HOSTILE not in html


def test_the_page_has_the_limits_of_embedded_forms(owner: Owner) -> None:
    form = make(owner)
    html = Api(None).call("GET", path_of(form)).body.decode()
    assert 'name="_url" tabindex="-1"' in html
    assert '"_elapsed"' in html
    visitor, route = Api(None), form["submitUrl"].partition("/api/")[2]
    headers = {"Content-Type": FORM, "Accept": "text/html"}
    answer = visitor.call("POST", f"/api/{route}", b"phone=%2B74951234567", headers)
    assert answer.status == 200
    assert len(call_console(owner.workspace.id, "list_leads")["collections"]) == 1


def test_a_form_that_takes_no_submissions_has_no_page(owner: Owner) -> None:
    site = call_console(owner.workspace.id, "create_site", title="Bakery")["project"]
    form = make(owner, projectId=site["id"])
    call_operator("suspend_site", id=site["id"])
    for path in (path_of(form), f"/form/{new_id()}", "/form/x"):
        for language, text in (("ru", "Такой страницы нет"), ("en", "Page not found")):
            answer = Api(None).call("GET", path, headers={"Accept-Language": language})
            assert answer.status == 404
            assert text in answer.body.decode()


@pytest.mark.parametrize(
    ("title", "text"),
    [("Call me", "Report this page"), ("Перезвоните мне", "Пожаловаться на страницу")],
)
def test_readers_report_a_form_to_the_operator(
    owner: Owner,
    reload_settings: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    title: str,
    text: str,
) -> None:
    path = path_of(make(owner, title=title))
    assert text not in Api(None).call("GET", path).body.decode()
    monkeypatch.setenv("SUPPORT_URL", "mailto:help@example.com?subject=a&body=b")
    reload_settings()
    html = Api(None).call("GET", path).body.decode()
    url = "mailto:help@example.com?subject=a&amp;body=b"
    assert f'<a href="{url}" rel="nofollow">{text}</a>' in html


def test_the_form_and_the_pages_after_it_show_the_business(owner: Owner) -> None:
    details = {"accent": "teal", "phone": "+7 495 123-45-67"}
    call_console(owner.workspace.id, "set_workspace", **details)
    form = make(owner)
    route = form["submitUrl"].partition("/api/")[2]
    headers = {"Content-Type": FORM, "Accept": "text/html"}

    def sent(body: bytes) -> Answer:
        return Api(None).call("POST", f"/api/{route}", body, headers)

    pages = [Api(None).call("GET", path_of(form)), sent(b"phone="), sent(b"phone=%2B74951234567")]
    assert [page.status for page in pages] == [200, 400, 200]
    for page in pages:
        html = page.body.decode()
        (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert f"style-src 'sha256-{digest}'" in page.headers["Content-Security-Policy"]
        assert "--accent:#0b6b70" in style.replace(" ", "")
        assert '<a class="phone" href="tel:+7495123-45-67">' in html
        assert owner.workspace.name in html.partition("</header>")[0]


def test_a_form_without_a_field_for_consent_has_a_box_and_stores_its_text(owner: Owner) -> None:
    call_console(owner.workspace.id, "set_workspace", privacyUrl="https://hair.example/rules")
    form = make(owner)
    html = Api(None).call("GET", path_of(form)).body.decode()
    (box,) = re.findall(r'<input type="checkbox" name="_consent"[^>]*>', html)
    assert " required" in box
    assert " checked" not in box
    assert 'href="https://hair.example/rules"' in html
    route = "/api/" + form["submitUrl"].partition("/api/")[2]
    headers = {"Content-Type": FORM, "Accept": "text/html"}
    again = Api(None).call("POST", route, b"phone=&_consent=on", headers).body.decode()
    assert re.search(r'name="_consent"[^>]* checked', again), "the tick is kept"
    Api(None).call("POST", route, b"phone=%2B74951234567&_consent=on", headers)
    (lead,) = call_console(owner.workspace.id, "list_leads")["collections"]
    consent = lead["data"].pop("consent")
    assert consent["label"] == "I agree to the processing of my personal data"
    assert consent["at"]
    assert lead["data"] == {"phone": "+74951234567"}


def submitted(owner: Owner, fields: list[dict[str, Any]], **values: str) -> dict[str, Any]:
    """Submit a form with these fields. Return the data of its lead."""
    form = make(owner, fields=fields)
    Api(None).post("/api/" + form["submitUrl"].partition("/api/")[2], values)
    (lead,) = call_console(owner.workspace.id, "list_leads")["collections"]
    data: dict[str, Any] = lead["data"]
    return data


PHONE_FIELD = {"name": "phone", "type": "phone", "label": "Phone"}


def test_a_consent_does_not_replace_what_a_visitor_has_written(owner: Owner) -> None:
    fields = [PHONE_FIELD, {"name": "consent", "type": "text", "label": "Doctor's consent"}]
    data = submitted(owner, fields, phone="+74951234567", consent="Dr. Who", _consent="on")
    assert data["consent"] == "Dr. Who"
    assert data["_consent"]["label"] == "I agree to the processing of my personal data"


@pytest.mark.parametrize(
    "field",
    [
        {"name": "rules", "type": "consent", "label": "I have read the rules"},
        {"name": "note", "type": "text", "label": "Note"},
    ],
)
def test_a_text_that_no_visitor_saw_is_no_consent(owner: Owner, field: dict[str, str]) -> None:
    fields = [PHONE_FIELD, field] if field["type"] == "consent" else [field]
    values = {"phone": "+74951234567"} if field["type"] == "consent" else {"note": "Hello"}
    assert submitted(owner, fields, **values, _consent="on") == values


@pytest.mark.parametrize("value", ["", "no", "off", "не согласен"])
def test_no_other_word_is_a_consent_and_the_lead_is_taken(owner: Owner, value: str) -> None:
    route = "/api/" + make(owner)["submitUrl"].partition("/api/")[2]
    Api(None).post(route, {"phone": "+74951234567", "_consent": value})
    (lead,) = call_console(owner.workspace.id, "list_leads")["collections"]
    assert lead["data"] == {"phone": "+74951234567"}
