"""Functions that read tokens, errors and values of fields from pages of the console."""

import html
import re

from tests.conftest import Answer


def text(answer: Answer) -> str:
    """Return the visible text of a page."""
    return html.unescape(answer.body.decode())


def token_of(answer: Answer, prefix: str = "svc_live_") -> str:
    """Return the token on a page."""
    token = re.search(r'id="token"><code>([^<]*)</code>', answer.body.decode())
    assert token
    assert token[1].startswith(prefix)
    return token[1]


def error_beside(answer: Answer, field: str, tag: str = "input") -> str:
    """Return the error message of a field. The summary must link to the field."""
    page = answer.body.decode()
    error = re.search(rf'id="{field}-error">([^<]*)<', page)
    assert error, page
    assert f'href="#{field}">{error[1]}<' in page
    assert re.search(rf'<{tag} id="{field}"[^>]*aria-invalid="true"', page)
    return error[1]


def value_of(answer: Answer, field: str) -> str:
    """Return the value of a field."""
    input_value = re.search(rf'<input id="{field}"[^>]* value="([^"]*)"', answer.body.decode())
    assert input_value
    return html.unescape(input_value[1])


def hidden_fields(answer: Answer, *names: str) -> dict[str, str]:
    """Return the first value of each of these hidden fields."""
    page = answer.body.decode()
    found = {name: re.search(rf'name="{name}" value="([^"]*)"', page) for name in names}
    return {name: html.unescape(match[1]) for name, match in found.items() if match}
