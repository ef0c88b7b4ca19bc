"""An e-mail rendered from templates has a subject, a plain part and an HTML part."""

import re
from collections.abc import Callable
from pathlib import Path

import jinja2
import pytest

from chalicelib.lib.markup import mails

TEXT = """\
{{ name }}: booked

Hello {{ name }},
{% for fact, value in facts %}
- {{ fact }}: {{ value }}
{% endfor %}
{{ url }}
"""
HTML = """\
{% extends "base.html" %}
{% from "parts.html" import heading, button, facts as facts_table with context %}
{% block content %}
{{ heading(name) }}
{{ facts_table(facts) }}
{{ button(url, "Manage") }}
{% endblock %}
{% block footer %}Sent to {{ name }}{% endblock %}
"""
URL = "https://example.com/b?id=1&t=2"

Render = Callable[..., mails.RenderedMail]


@pytest.fixture
def render(tmp_path: Path) -> Render:
    (tmp_path / "booked").mkdir()
    for language in ("en", "ru"):
        (tmp_path / "booked" / f"{language}.txt").write_text(TEXT)
        (tmp_path / "booked" / f"{language}.html").write_text(HTML)

    def rendered(name: str = "Ada", value: str = "10:00") -> mails.RenderedMail:
        return mails.render(
            tmp_path, "booked", "ru", name=name, facts=[("Time", value), ("Place", "Here")], url=URL
        )

    return rendered


def test_a_mail_has_a_subject_a_text_and_a_page(render: Render) -> None:
    mail = render()
    assert mail.subject == "Ada: booked"
    assert mail.text == f"Hello Ada,\n- Time: 10:00\n- Place: Here\n{URL}\n"
    assert mail.html.lstrip().startswith("<!doctype html>")
    assert '<html lang="ru">' in mail.html
    assert "<title>Ada: booked</title>" in mail.html
    assert f'href="{URL.replace("&", "&amp;")}"' in mail.html
    assert "Sent to Ada" in mail.html


def test_values_are_escaped_in_the_page_and_one_line_in_the_text(render: Render) -> None:
    mail = render(name="<b>Ada</b>\r\nBcc: eve@example.com", value="1\n\nPay here:\u2028now\0")
    assert mail.subject == "<b>Ada</b> Bcc: eve@example.com: booked"
    assert "- Time: 1 Pay here: now\n" in mail.text
    assert mail.text.startswith("Hello <b>Ada</b> Bcc: eve@example.com,\n")
    assert "<b>" not in mail.html
    assert "&lt;b&gt;Ada" in mail.html


def test_the_layout_loads_nothing_and_runs_nothing(render: Render) -> None:
    html = render().html
    assert not re.search(r"<(img|script|link|iframe|object|form)\b|url\(|@import", html)
    assert re.findall(r'https?://[^"]+', html) == [URL.replace("&", "&amp;")]


def test_a_missing_value_or_language_is_an_error(tmp_path: Path, render: Render) -> None:
    with pytest.raises(jinja2.UndefinedError, match="name"):
        mails.render(tmp_path, "booked", "en", facts=[], url=URL)
    with pytest.raises(jinja2.TemplateNotFound):
        mails.render(tmp_path, "moved", "en")
