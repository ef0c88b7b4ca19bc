"""Render the embed code of forms, and their pages for browsers without JavaScript.

The form is plain HTML. It has no ids, so that it can occur twice on a page. It has few styles, with
enough specificity to override a page's rules for bare elements. The script is optional: it avoids a
page load, shows errors next to their fields, and sends the referrer and the time to fill in the
form. Names that begin with an underscore are reserved for the service. No declared field can have
one. The markup is in ``templates``, styles and the script are in ``static`` (ADR 47).
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from chalicelib.domains.leads.rules.form_fields import (
    CART,
    MAX_EMAIL,
    MAX_PHONE,
    MAX_TEXT,
    MAX_TEXTAREA,
    FieldSpec,
    lacks_consent,
)
from chalicelib.domains.leads.rules.form_texts import form_text
from chalicelib.lib import localized
from chalicelib.lib.currencies import RUB
from chalicelib.lib.markup import brands, templates
from chalicelib.lib.markup.brands import Brand
from chalicelib.lib.markup.css import minify_css

if TYPE_CHECKING:
    from jinja2 import Environment

HONEYPOT = "_url"  # Hidden field of the form. Only a bot fills it in.
PAGE = "_page"
REFERRER = "_referrer"
# Milliseconds since the form was shown. Only the script of the embed code sends them.
ELAPSED = "_elapsed"
CONSENT = "_consent"  # Box of a form that takes contacts and has no field for consent.

_TYPES = {"phone": "tel", "consent": "checkbox"}
_LENGTHS = {
    "text": MAX_TEXT,
    "textarea": MAX_TEXTAREA,
    "email": MAX_EMAIL,
    "phone": MAX_PHONE,
}
_AUTOCOMPLETE_BY_TYPE = {"email": "email", "phone": "tel"}
# Values of the ``autocomplete`` attribute (HTML, autofill field names), by field name.
_AUTOCOMPLETE_BY_NAME = {
    "name": "name",
    "fullname": "name",
    "firstname": "given-name",
    "lastname": "family-name",
    "surname": "family-name",
    "company": "organization",
    "organization": "organization",
    "country": "country-name",
    "city": "address-level2",
    "address": "street-address",
    "zip": "postal-code",
    "postcode": "postal-code",
    "postalcode": "postal-code",
    "birthday": "bday",
    "birthdate": "bday",
}
_FOLDER = Path(__file__).parent
_MAX_HEADING = 80


def _style_sheet(name: str) -> str:
    # In the file, blank lines separate rules.
    rules = (_FOLDER / "static" / f"{name}.css").read_text().split("\n\n")
    return "\n".join(filter(None, map(minify_css, rules)))


_FORM_STYLE = _style_sheet("form")
_PREVIEW_STYLE = "body{margin:1rem;font:1rem/1.5 system-ui,sans-serif}"


def _content_source(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


_EMBED_STYLE = f"\n{_FORM_STYLE}\n"
# Sources of the styles in a preview, for a Content-Security-Policy.
PREVIEW_STYLES = f"{_content_source(_PREVIEW_STYLE)} {_content_source(_EMBED_STYLE)}"


@cache
def _page_style(accent: str | None) -> str:
    # A page looks like the booking page of the business.
    look = [brands.style("tokens"), brands.accent_style(accent) if accent else ""]
    shared = minify_css("\n".join([*look, brands.style("brand")]))
    return f"{_FORM_STYLE}\n{shared}\n{_style_sheet('page')}"


def _accent(brand: Brand | None) -> str | None:
    return brand.accent if brand else None


def page_headers(brand: Brand | None = None) -> dict[str, str]:
    """Return the headers of a page of this module, which shows a business or none.

    The pages may be in a frame, because forms may be.
    """
    style = _content_source(_page_style(_accent(brand)))
    logo = "img-src 'self' https:; " if brand and brand.logo_url else ""
    return {
        # form-action also applies to redirects after a form (CSP 3, 6.4.1), so all of https is
        # allowed.
        "Content-Security-Policy": (
            f"default-src 'none'; style-src {style}; {logo}"
            "base-uri 'none'; form-action 'self' https:"
        ),
        "X-Content-Type-Options": "nosniff",
        "X-Robots-Tag": "noindex",
        "Referrer-Policy": "strict-origin-when-cross-origin",
    }


def form_page_headers(language: str, brand: Brand | None) -> dict[str, str]:
    """Return the headers of a form's own page, which runs the script of the embed code."""
    policy, headers = "Content-Security-Policy", page_headers(brand)
    script = f"script-src {_content_source(_script(language))}; connect-src 'self'"
    return {**headers, policy: f"{headers[policy]}; {script}"}


class _Control(NamedTuple):
    name: str
    label: str
    type: str
    value: str
    error: str
    required: bool
    options: tuple[str, ...]
    max_length: int | None
    autocomplete: str | None


def embed_html(  # noqa: PLR0913  a form and what surrounds it
    title: str,
    fields: Sequence[FieldSpec],
    submit_url: str,
    *,
    language: str,
    on_own_page: bool = False,
    policy_url: str | None = None,
) -> str:
    """Return the embed code of a form. Without script, it shows one of the pages below.

    On a page of the service, the form asks for the consent that it has no field for, and leads to
    the privacy policy at ``policy_url``.
    """
    return _render(
        "embed",
        language=language,
        title=title,
        submit_url=submit_url,
        style=_FORM_STYLE,
        script=_script(language),
        **_form(fields, {}, {}, "send"),
        **_consent(fields if on_own_page else (), {}, policy_url),
    )


def preview_html(title: str, fields: Sequence[FieldSpec], language: str) -> str:
    """Return a document that shows a form as a page with few styles of its own does.

    It has neither the script nor the URL of the form.
    """
    return _render(
        "preview",
        language=language,
        page_style=_PREVIEW_STYLE,
        title=title,
        submit_url="",
        style=_FORM_STYLE,
        script="",
        **_form(fields, {}, {}, "send"),
        **_consent((), {}, None),
    )


class OrderLine(NamedTuple):
    """A product of an order, with its present price in minor units."""

    product_id: str
    name: str
    quantity: int
    price: int

    def cost(self, language: str, currency: str) -> str:
        return _money(language, self.price * self.quantity, currency)  # such as ``450 ₽``


def _money(language: str, amount: int, currency: str) -> str:
    return localized.money("ru" if language == "ru" else "en", amount, currency)


def form_page(  # noqa: PLR0913  a form and what surrounds it
    title: str,
    fields: Sequence[FieldSpec],
    language: str,
    *,
    submit_url: str,
    brand: Brand | None,
    is_test: bool = False,
    order: Sequence[OrderLine] = (),
    currency: str = RUB,
    page_url: str = "",
    report_url: str = "",
) -> str:
    """Return a page with a form, which links can open.

    ``brand`` is the business in the header. ``order`` is shown, with prices in ``currency``, and
    sent with the form. Without script, the form sends ``page_url`` as the page's. A link to
    ``report_url``, if there is one, lets readers report the page to the operator.
    """
    cart = [{"productId": line.product_id, "quantity": line.quantity} for line in order]
    values = {CART: json.dumps(cart) if cart else "", PAGE: page_url}
    return _page(
        "form",
        language=language,
        title=title,
        brand=brand,
        is_test=is_test,
        submit_url=submit_url,
        script=_script(language),
        order=order,
        currency=currency,
        report_url=report_url,
        total=_money(language, sum(line.price * line.quantity for line in order), currency),
        **_form(fields, values, {}, "send"),
        **_consent(fields, {}, brand.privacy_url if brand else None),
    )


def error_page(  # noqa: PLR0913  a form, its values and errors
    title: str,
    fields: Sequence[FieldSpec],
    language: str,
    *,
    message: str,
    values: Mapping[str, object],
    errors: Mapping[str, str],
    brand: Brand | None = None,
) -> str:
    """Return a page with the form, the submitted values, and errors next to their fields.

    The form posts to the URL of the page, which received the first submission. ``values`` include
    hidden fields. ``errors`` are messages by field name.
    """
    form = _form(fields, values, errors, "again")
    form |= _consent(fields, values, brand.privacy_url if brand else None)
    return _page("error", language=language, title=title, message=message, brand=brand, **form)


def thanks_page(
    message: str, *, language: str, back_url: str | None, brand: Brand | None = None
) -> str:
    """Return the page after the submission of a form that has no redirect URL.

    ``back_url`` is the browser's ``Referer``. No field of the form can set it.
    """
    is_heading = len(message) <= _MAX_HEADING and "\n" not in message
    title = form_text(language, "thanks")
    return _page(
        "thanks",
        language=language,
        back_url=back_url,
        title=title,
        message=message,
        is_heading=is_heading,
        brand=brand,
    )


def failure_page(message: str, *, language: str, back_url: str | None) -> str:
    """Return the page after a failure for which the form cannot be shown again."""
    title = form_text(language, "not_sent")
    return _page("failure", language=language, back_url=back_url, title=title, message=message)


def _page(
    template: str,
    *,
    language: str,
    back_url: str | None = None,
    brand: Brand | None = None,
    **values: Any,  # noqa: ANN401  values of any type
) -> str:
    # The page has a link to ``back_url`` if this is an http(s) URL.
    # A link with another scheme, such as ``javascript:``, could run code on the page.
    if back_url is not None and not back_url.startswith(("https://", "http://")):
        back_url = None
    shown = {"back_url": back_url, "brand": brand, "style": _page_style(_accent(brand))}
    page = _render(template, language=language, **shown, **values)
    return f"{page}\n"


def _render(name: str, *, language: str, **values: object) -> str:
    template = _templates().get_template(f"{name}.html")
    return template.render(lang=language, translate=partial(form_text, language), **values)


@cache
def _templates() -> "Environment":
    return templates.environment(_FOLDER / "templates", brands.FOLDER)


@cache
def _script(language: str) -> str:
    script = (_FOLDER / "static" / "embed.js").read_text().strip()
    return script.replace("OFFLINE", form_text(language, "offline"))


def _form(
    fields: Sequence[FieldSpec],
    values: Mapping[str, object],
    errors: Mapping[str, str],
    button: str,
) -> dict[str, Any]:
    # ``button`` is the key of the button's text.
    return {
        "controls": list(_controls(fields, values, errors)),
        "page_url": _display_value(values.get(PAGE)),
        "cart": _display_value(values.get(CART)),
        "others": _others(fields, values),
        "button": button,
    }


def _consent(
    fields: Sequence[FieldSpec], values: Mapping[str, object], policy_url: str | None
) -> dict[str, Any]:
    return {
        "consent_name": CONSENT if lacks_consent(fields) else "",
        "has_agreed": bool(values.get(CONSENT)),
        "policy_url": policy_url,
    }


def _others(fields: Sequence[FieldSpec], values: Mapping[str, object]) -> list[tuple[str, str]]:
    # Values of fields that the form does not have are sent again with the form.
    shown = {field.name for field in fields} | {CART}
    return [
        (name, _display_value(each))
        for name, value in values.items()
        if name not in shown and not name.startswith("_")
        for each in (value if isinstance(value, list) else [value])
        if _display_value(each)
    ]


def _controls(
    fields: Sequence[FieldSpec], values: Mapping[str, object], errors: Mapping[str, str]
) -> Iterator[_Control]:
    for field in fields:
        by_name = _AUTOCOMPLETE_BY_NAME.get(field.name.replace("_", "").lower())
        yield _Control(
            name=field.name,
            label=field.label + ("\u00a0*" if field.required else ""),
            type=_TYPES.get(field.type, field.type),
            value=_display_value(values.get(field.name)),
            error=errors.get(field.name, ""),
            required=field.required,
            options=field.options,
            max_length=_LENGTHS.get(field.type),
            autocomplete=_AUTOCOMPLETE_BY_TYPE.get(field.type, by_name),
        )


def _display_value(value: object) -> str:
    # Of several values, the first one is shown. Objects, which only programs send, are omitted.
    if isinstance(value, list):
        value = next(iter(value), None)
    if isinstance(value, bool):
        return "on" if value else ""
    return str(value) if isinstance(value, str | int | float) else ""
