"""The HTML of capture forms: the code to paste into a page, and the pages of who has no script.

The form is plain HTML. It has no ids, so that it may stand twice on a page, and few styles, whose
weight beats a page's rules for bare elements. Its script is a convenience: it stays on the page,
puts errors beside their fields, and says where the visitor came from and how long the form took.
Names that begin with an underscore are ours; no declared field can have one.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from chalicelib.domains.leads.rules.form_fields import (
    CART,
    MAX_EMAIL,
    MAX_PHONE,
    MAX_TEXT,
    MAX_TEXTAREA,
    FieldSpec,
)
from chalicelib.domains.leads.rules.form_texts import text

HONEYPOT = "_url"
"""A field that no person sees; what fills it in is a program."""
PAGE = "_page"
REFERRER = "_referrer"
ELAPSED = "_elapsed"
"""Milliseconds since the form was there; only the script of the embed code can say."""

_TYPES = {"phone": "tel", "consent": "checkbox"}
_LENGTHS = {
    "text": MAX_TEXT,
    "textarea": MAX_TEXTAREA,
    "email": MAX_EMAIL,
    "phone": MAX_PHONE,
}
_COMPLETED_BY_TYPE = {"email": "email", "phone": "tel"}
_COMPLETED_BY_NAME = {
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
"""What browsers may fill in (HTML, autofill field names)."""

_FORM_STYLE = """\
.svc-form{max-width:30em;line-height:1.4}
.svc-form label{display:block;float:none;width:auto;margin:0 0 1em}
.svc-form input,.svc-form select,.svc-form textarea{display:block;box-sizing:border-box;width:100%;\
margin:.25em 0 0;padding:.5em;font:inherit}
.svc-form [type=checkbox]{display:inline-block;width:auto;margin:0 .5em 0 0}
.svc-form em{display:block;margin:.25em 0 0;padding:.1em .5em;font-style:normal;\
background:#fdecea;color:#8c1d18}
.svc-form button{padding:.6em 1.5em;font:inherit;cursor:pointer}
.svc-form [hidden]{display:none!important}"""

_SCRIPT = """\
(function(){
var f=document.currentScript.parentNode,t=Date.now(),\
m=f.querySelector("[role=status]"),b=f.querySelector("button");
function all(s,c){[].forEach.call(f.querySelectorAll(s),c)}
if(window.fetch)f.addEventListener("submit",function(e){
e.preventDefault();
if(b.disabled)return;
var d=new FormData(f),u=location.href,r=document.referrer;
d.set("_page",/^http/.test(u)?u:r);d.set("_referrer",r);d.set("_elapsed",Date.now()-t);
b.disabled=true;m.textContent="";
all("em",function(x){x.remove()});
all("[aria-invalid]",function(x){x.removeAttribute("aria-invalid")});
fetch(f.getAttribute("action"),{method:"POST",headers:{Accept:"application/json"},\
body:new URLSearchParams(d)}).then(function(a){return a.json()}).then(function(a){
a=a.data;m.textContent=a.message;
if(a.status){all("label,button",function(x){x.remove()});m.tabIndex=-1;m.focus();\
if(a.redirectUrl)location.href=a.redirectUrl;return}
b.disabled=false;
(a.errors||[]).reverse().forEach(function(x){
var i=f.querySelector('[name="'+x.field+'"]'),n=document.createElement("em");
if(!i)return;
n.textContent=x.message;i.parentNode.appendChild(n);i.setAttribute("aria-invalid","true");i.focus()})
}).catch(function(){b.disabled=false;m.textContent="OFFLINE"})})})()"""

_PAGE_STYLE = """
:root{color-scheme:light dark;--ground:#f4f5f7;--card:#fff;--text:#1b2430;--line:#d3d9e0;\
--field:#8590a0;--accent:#1d5bc9;--on-accent:#fff;--ok:#187741;--alert:#fdecea;--on-alert:#8c1d18}
@media(prefers-color-scheme:dark){:root{--ground:#11151a;--card:#1a2028;--text:#e7ebf0;\
--line:#303946;--field:#758295;--accent:#8db6ff;--on-accent:#0a1a35;--ok:#6fd39a;--alert:#3b1715;\
--on-alert:#ffb8b0}}
body{display:grid;box-sizing:border-box;min-height:100vh;margin:0;padding:1rem;\
place-items:center;background:var(--ground);color:var(--text);\
font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
main{box-sizing:border-box;width:100%;max-width:34rem;padding:clamp(1.25rem,6vw,2.5rem);\
border:1px solid var(--line);border-radius:.75rem;background:var(--card)}
h1{margin:0 0 1rem;font-size:1.5rem;line-height:1.3;text-wrap:balance;white-space:pre-line}
p{margin:0 0 1rem;white-space:pre-line}
main>:last-child{margin-bottom:0}
a{color:var(--accent)}
svg{display:block;margin:0 0 1rem;stroke:var(--ok)}
.svc-form{max-width:none}
.svc-form input,.svc-form select,.svc-form textarea{border:1px solid var(--field);\
border-radius:.4rem;background:transparent;color:inherit}
.svc-form [aria-invalid]{border-color:var(--on-alert)}
.alert,.svc-form em{border-radius:.4rem;background:var(--alert);color:var(--on-alert)}
.alert{padding:.75rem 1rem}
.svc-form button{border:0;border-radius:.4rem;background:var(--accent);color:var(--on-accent);\
font-weight:600}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
option{color:var(--text);background:var(--card)}"""

_TICK = (
    '<svg aria-hidden="true" width="48" height="48" viewBox="0 0 24 24" fill="none"'
    ' stroke-width="2" stroke-linecap="round" stroke-linejoin="round">'
    '<circle cx="12" cy="12" r="10"/><path d="m9 12 2 2 4-4"/></svg>'
)
"""Lucide's circle-check (ISC licence)."""
_MAX_HEADING = 80

_STYLE = _FORM_STYLE + _PAGE_STYLE
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
PAGE_HEADERS = {
    # A form's redirect is followed within form-action, too (CSP 3, 6.4.1), hence all of https.
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
        "form-action 'self' https:"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
    "Referrer-Policy": "strict-origin-when-cross-origin",
}
"""Headers that every page of this module is sent with. Frames may hold it, as they do a form."""


def embed_html(title: str, fields: Sequence[FieldSpec], submit_url: str, language: str) -> str:
    """Return a form to paste into any page; without script it posts, and leads to our pages."""
    script = _SCRIPT.replace("OFFLINE", text(language, "offline"))
    inside = "\n".join(_inside(fields, language, {}, {}, "send"))
    return (
        f"{_form_tag(title, submit_url, language)}\n<style>\n{_FORM_STYLE}\n</style>\n{inside}\n"
        f'<p role="status"></p>\n<script>{script}</script>\n</form>'
    )


def error_page(  # noqa: PLR0913  what a form was, and what became of it
    title: str,
    fields: Sequence[FieldSpec],
    language: str,
    *,
    message: str,
    values: Mapping[str, object],
    errors: Mapping[str, str],
) -> str:
    """Return the form once more, with what was typed, and what is wrong beside each field.

    It posts to where it is shown, which is where it was posted to.

    ``values`` are as they were sent, ours included; ``errors`` are messages by field.
    """
    inside = "\n".join(_inside(fields, language, values, errors, "again"))
    body = (
        f'<h1>{escape(title)}</h1>\n<p class="alert" role="alert">{escape(message)}</p>\n'
        f"{_form_tag(title, None, language)}\n{inside}\n</form>"
    )
    return _document(title, language, body)


def thanks_page(message: str, language: str, back_url: str | None) -> str:
    """Return what a visitor sees after a form without a redirect of its own.

    ``back_url`` is the page that the browser itself says it comes from: no visitor names one.
    """
    if len(message) <= _MAX_HEADING and "\n" not in message:
        said = f"<h1>{escape(message)}</h1>"
    else:
        said = f"<h1>{text(language, 'thanks')}</h1>\n<p>{escape(message)}</p>"
    body = f"{_TICK}\n{said}{_back(language, back_url)}"
    return _document(text(language, "thanks"), language, body)


def failure_page(message: str, language: str, back_url: str | None) -> str:
    """Return what a visitor sees where the form itself cannot be shown again."""
    heading = text(language, "not_sent")
    body = (
        f'<h1>{heading}</h1>\n<p class="alert" role="alert">{escape(message)}</p>'
        f"{_back(language, back_url)}"
    )
    return _document(heading, language, body)


def _back(language: str, url: str | None) -> str:
    if url is None or not url.startswith(("https://", "http://")):
        return ""
    link = f'<a href="{escape(url)}" rel="nofollow noopener">{text(language, "back")}</a>'
    return f"\n<p>{link}</p>"


def _document(title: str, language: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="robots" content="noindex">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _form_tag(title: str, submit_url: str | None, language: str) -> str:
    action = f' action="{escape(submit_url)}"' if submit_url else ""
    return (
        f'<form class="svc-form"{action} method="post"'
        f' accept-charset="utf-8" lang="{language}" aria-label="{escape(title)}">'
    )


def _inside(
    fields: Sequence[FieldSpec],
    language: str,
    values: Mapping[str, object],
    errors: Mapping[str, str],
    button: str,
) -> Iterator[str]:
    """Yield the lines of a form: its fields, ours, and the button."""
    for field in fields:
        error = errors.get(field.name, "")
        yield _field(field, language, _typed(values.get(field.name)), error)
    yield _hidden(PAGE, _typed(values.get(PAGE)))
    if cart := _typed(values.get(CART)):
        yield _hidden(CART, cart)
    yield (f'<div hidden><input name="{HONEYPOT}" tabindex="-1" autocomplete="off"></div>')
    yield f"<button>{text(language, button)}</button>"


def _typed(value: object) -> str:
    """Return a value as a form shows it; a program's list or object is not shown."""
    if isinstance(value, bool):
        return "on" if value else ""
    return str(value) if isinstance(value, str | int | float) else ""


def _field(field: FieldSpec, language: str, value: str, error: str) -> str:
    """Return a field with its label, the error within it: so it belongs to the field's name."""
    kind = _TYPES.get(field.type, field.type)
    attributes = _attributes(field) + (' aria-invalid="true"' if error else "")
    if kind == "hidden":
        return _hidden(field.name, value)
    label = escape(field.label) + ("\u00a0*" if field.required else "")
    wrong = f"<em>{escape(error)}</em>" if error else ""
    if kind == "checkbox":
        ticked = " checked" if value else ""
        return f'<label><input type="checkbox"{attributes}{ticked}>{label}{wrong}</label>'
    if kind == "textarea":
        # The parser drops a first line break (HTML, 13.2.6.4.7), which may be the visitor's.
        control = f'<textarea rows="4"{attributes}>\n{escape(value)}</textarea>'
    elif kind == "select":
        options = "".join(_option(option, value) for option in field.options)
        control = (
            f'<select{attributes}><option value="">{text(language, "choose")}</option>'
            f"{options}</select>"
        )
    else:
        any_step = ' step="any"' if kind == "number" else ""
        given = f' value="{escape(value)}"' if value else ""
        control = f'<input type="{kind}"{attributes}{any_step}{given}>'
    return f"<label>{label}{control}{wrong}</label>"


def _hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'


def _option(option: str, chosen: str) -> str:
    mark = " selected" if option == chosen else ""
    return f"<option{mark}>{escape(option)}</option>"


def _attributes(field: FieldSpec) -> str:
    attributes = f' name="{escape(field.name)}"'
    if field.required:
        attributes += " required"
    if limit := _LENGTHS.get(field.type):
        attributes += f' maxlength="{limit}"'
    by_name = _COMPLETED_BY_NAME.get(field.name.replace("_", "").lower(), "")
    if completed := _COMPLETED_BY_TYPE.get(field.type) or by_name:
        attributes += f' autocomplete="{completed}"'
    return attributes
