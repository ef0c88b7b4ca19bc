"""The HTML of forms is plain and small, and escapes the strings of users."""

import base64
import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.leads.flows.form_html import (
    HONEYPOT,
    embed_html,
    error_page,
    failure_page,
    page_headers,
    thanks_page,
)
from chalicelib.domains.leads.rules.form_fields import FieldSpec
from chalicelib.lib.markup.brands import Brand

URL = "https://api.workspace.example/api/public/forms/01M80E9WFFXHYTPJSSDX3X22Y7/submit"
ALL_TYPES = (
    FieldSpec("name", "Ваше имя", "text", required=True),
    FieldSpec("email", "Почта", "email", required=True),
    FieldSpec("phone", "Телефон", "phone"),
    FieldSpec("text", "Комментарий", "textarea"),
    FieldSpec("guests", "Гостей", "number"),
    FieldSpec("cake", "Торт", "select", required=True, options=("Медовик", "Наполеон")),
    FieldSpec("day", "Дата", "date"),
    FieldSpec("news", "Присылать новости", "checkbox"),
    FieldSpec("promo", "Промо", "hidden"),
    FieldSpec("agree", "Согласие", "consent", required=True),
)


class Parsed(HTMLParser):
    """Collects the tags and the element contents, in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ended: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), attrs
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.ended.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def find_by_name(self, name: str) -> dict[str, str | None]:
        (tag,) = (attributes for _, attributes in self.tags if attributes.get("name") == name)
        return tag

    @property
    def shape(self) -> list[Any]:
        return [(tag, tuple(attributes)) for tag, attributes in self.tags]

    @property
    def text(self) -> str:
        return "".join(self.texts)


def embedded(language: str = "ru", title: str = "Заявка") -> Parsed:
    return Parsed(embed_html(title, ALL_TYPES, URL, language=language))


class TestEmbedCode:
    def test_the_code_of_five_fields_takes_at_most_3_kb(self) -> None:
        five = [ALL_TYPES[i] for i in (0, 1, 2, 3, 9)]
        assert len(embed_html("Заявка на торт", five, URL, language="ru").encode()) <= 3_000

    def test_the_form_posts_without_script(self) -> None:
        (form,) = embedded().all("form")
        assert (form["action"], form["method"]) == (URL, "post")
        assert (form["lang"], form["accept-charset"]) == ("ru", "utf-8")

    def test_every_visible_field_has_a_label(self) -> None:
        html = embedded()
        seen = [field for field in ALL_TYPES if field.type != "hidden"]
        assert len(html.all("label")) == len(seen)
        for field in seen:
            assert field.label + (" *" if field.required else "") in html.text
            assert ("required" in html.find_by_name(field.name)) is field.required

    @pytest.mark.parametrize(
        ("name", "type_", "completed"),
        [
            ("name", "text", "name"),
            ("email", "email", "email"),
            ("phone", "tel", "tel"),
            ("guests", "number", None),
            ("day", "date", None),
            ("news", "checkbox", None),
            ("agree", "checkbox", None),
            ("promo", "hidden", None),
        ],
    )
    def test_fields_declare_their_type_and_limits(
        self, name: str, type_: str, completed: str | None
    ) -> None:
        field = embedded().find_by_name(name)
        assert (field["type"], field.get("autocomplete")) == (type_, completed)

    def test_number_fields_accept_fractions_and_selects_offer_their_options(self) -> None:
        html = embedded("en")
        assert html.find_by_name("guests")["step"] == "any"
        assert [option.get("value") for option in html.all("option")] == ["", None, None]
        assert "Choose…МедовикНаполеон" in html.text

    def test_honeypot_is_hidden_from_visitors_screen_readers_and_autofill(self) -> None:
        html = embed_html("Заявка", ALL_TYPES, URL, language="ru")
        trap = Parsed(html).find_by_name(HONEYPOT)
        assert (trap["tabindex"], trap["autocomplete"]) == ("-1", "off")
        assert f'<div hidden><input name="{HONEYPOT}"' in html
        assert "[hidden]{display:none!important}" in html

    def test_the_code_has_no_ids_and_styles_only_itself(self) -> None:
        html = embed_html("Заявка", ALL_TYPES, URL, language="ru")
        assert not [
            tag for tag, attributes in Parsed(html).tags if {"id", "style"} & set(attributes)
        ]
        (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
        for selector in re.findall(r"([^{}]+)\{", style):
            assert all(part.strip().startswith(".svc-form") for part in selector.split(","))

    def test_the_only_script_contains_no_text_of_the_form(self) -> None:
        (one,) = re.findall(
            r"<script>.*?</script>", embed_html("A", ALL_TYPES, URL, language="en"), re.DOTALL
        )
        (other,) = re.findall(
            r"<script>.*?</script>", embed_html("B", (), URL, language="en"), re.DOTALL
        )
        assert one == other
        assert "localStorage" not in one


class TestErrorPage:
    def page(self, values: dict[str, object], **errors: str) -> Parsed:
        return Parsed(
            error_page("Заявка", ALL_TYPES, "ru", message="Проверьте", values=values, errors=errors)
        )

    def test_the_error_page_keeps_the_entered_values(self) -> None:
        values = {
            "name": "Анна",
            "email": "anna@",
            "text": "\nпервая\nвторая",
            "guests": 3,
            "cake": "Наполеон",
            "day": "2030-01-31",
            "news": "on",
            "promo": "spring",
            "items": '[{"productId":"1"}]',
            "_page": "https://bakery.example/order",
            "_url": "",
            "other": "dropped",
        }
        html = self.page(values)
        for name in ("name", "email", "guests", "day", "promo", "items", "_page"):
            assert html.find_by_name(name)["value"] == str(values[name])
        assert "checked" in html.find_by_name("news")
        assert "checked" not in html.find_by_name("agree")
        assert [("selected" in option) for option in html.all("option")] == [False, False, True]
        assert "\n\nпервая\nвторая" in html.texts  # The parser drops the first of two line breaks.
        assert "dropped" not in html.text

    def test_an_error_stands_inside_its_fields_label(self) -> None:
        html = error_page(
            "Заявка", ALL_TYPES, "ru", message="m", values={}, errors={"email": "Введите адрес"}
        )
        assert re.search(r"<label>Почта\s\*<input[^>]* aria-invalid=\"true\"><em>Введите", html)
        assert len(Parsed(html).all("em")) == 1

    def test_the_error_page_posts_to_the_same_url_without_script(self) -> None:
        html = self.page({})
        (form,) = html.all("form")
        assert "action" not in form
        assert not html.all("script")

    @pytest.mark.parametrize("value", [["a"], {"a": "b"}, None, 1.5, True, False])
    def test_the_error_page_accepts_any_submitted_values(self, value: object) -> None:
        values = {field.name: value for field in ALL_TYPES} | {"_page": value, "items": value}
        assert self.page(values).all("form")


class TestPages:
    @pytest.mark.parametrize(
        "html",
        [
            thanks_page("Спасибо!", language="ru", back_url="https://bakery.example/"),
            failure_page("Не вышло", language="ru", back_url=None),
            error_page("Заявка", ALL_TYPES, "ru", message="m", values={}, errors={}),
        ],
    )
    def test_pages_are_readable_and_not_indexed(self, html: str) -> None:
        parsed = Parsed(html)
        assert parsed.all("html") == [{"lang": "ru"}]
        assert {"name": "robots", "content": "noindex"} in parsed.all("meta")
        assert "width=device-width" in str(parsed.find_by_name("viewport")["content"])
        assert [len(parsed.all(tag)) for tag in ("h1", "main", "title")] == [1, 1, 1]

    def test_the_policy_allows_only_the_pages_own_style(self) -> None:
        (style,) = re.findall(
            r"<style>(.*?)</style>", thanks_page("A", language="en", back_url=None), re.DOTALL
        )
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        policy = page_headers()["Content-Security-Policy"]
        assert f"style-src 'sha256-{digest}'" in policy
        assert "default-src 'none'" in policy

    def test_the_link_back_leads_only_to_web_pages(self) -> None:
        url = "https://bakery.example/?a=1&b=2"
        assert Parsed(thanks_page("A", language="en", back_url=url)).all("a")[0]["href"] == url
        for other in (None, "", "javascript:alert(1)", "data:text/html,a", "//evil.example"):
            assert not Parsed(failure_page("A", language="en", back_url=other)).all("a")

    def test_a_long_message_stands_below_a_short_heading(self) -> None:
        assert "<h1>Bye</h1>" in thanks_page("Bye", language="en", back_url=None)
        assert "<h1>Thank you!</h1>\n<p>See you\nsoon</p>" in thanks_page(
            "See you\nsoon", language="en", back_url=None
        )


def _documents(text: str) -> Iterator[str]:
    field = FieldSpec("a", text, "text", required=True)
    fields = [field]
    fields += [FieldSpec(f"b{i}", text, kind) for i, kind in enumerate(("textarea", "checkbox"))]
    fields.append(FieldSpec("c", text, "select", options=("x", text)))
    fields.append(FieldSpec("d", text, "hidden"))
    values = dict.fromkeys(("a", "b0", "d", "_page", "items"), text)
    yield embed_html(text, fields, f"https://a.example/{text}", language="en")
    yield error_page(
        text, fields, "ru", message=text, values=values, errors={"a": text, "b1": text}
    )
    yield thanks_page(text, language="en", back_url=f"https://a.example/{text}")
    yield failure_page(text, language="ru", back_url=f"https://a.example/{text}")


class TestHostileTexts:
    @given(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60)
        | st.sampled_from(
            [
                "<script>alert(1)</script>",
                '"><img src=x onerror=alert(1)>',
                "' onfocus='alert(1)' autofocus='",
                "</textarea><script>",
                "</title></style></script><!--",
                "]]>&lt;&#60;&amp",
                "</form><form action=https://evil.example>",
            ]
        )
    )
    def test_hostile_strings_add_no_markup(self, text: str) -> None:
        for hostile, plain in zip(_documents(text), _documents("a"), strict=True):
            parsed = Parsed(hostile)
            assert parsed.shape == Parsed(plain).shape
            assert parsed.ended == Parsed(plain).ended


def test_jinja_is_imported_with_the_first_form() -> None:
    """A submission by the form's script renders nothing, and must not pay for the import."""
    script = """
import sys
from chalicelib.domains.leads.flows import form_html
from chalicelib.transports import public
before = "jinja2" in sys.modules
form_html.thanks_page("Bye", language="en", back_url=None)
print(before, "jinja2" in sys.modules)
"""
    process = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert process.stdout == "False True\n"


@pytest.mark.parametrize("logo", [None, "https://files.example/logo.png"])
def test_a_page_loads_images_only_for_the_logo_of_its_business(logo: str | None) -> None:
    brand = Brand(name="Bloom", phone=None, logo_url=logo, accent=None, address=None, country="GB")
    policy = page_headers(brand)["Content-Security-Policy"]
    assert ("img-src" in policy) is (logo is not None)
