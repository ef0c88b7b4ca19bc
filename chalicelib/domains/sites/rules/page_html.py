"""A site's page as it is served: its own HTML to the letter, with what it lacks put in.

That is a title and a description, where the page's record has them and its HTML does not, and the
line that counts the visit. Nothing of the author's is changed or moved.
"""

import re
from html import escape
from itertools import islice

from pydantic_core import to_json

_ATTRIBUTES = r"""(?:[^>"']|"[^"]*+"|'[^']*+')*+"""
_PROLOGUE = re.compile(
    rf"\ufeff?(?:\s++|<!--.*?-->|<!doctype\b[^>]*+>|<html\b{_ATTRIBUTES}>|<head\b{_ATTRIBUTES}>)*+",
    re.IGNORECASE | re.DOTALL,
)
"""What may stand before anything is said in a head (HTML, 13.1)."""
_MAX_TOKENS = 2_000
"""So far a head is looked for in a page that never says where its body begins."""
_BODY_END = re.compile(r"</body\s*>", re.IGNORECASE)


def complete(html: str, *, title: str, description: str | None) -> str:
    """Return a page with a title and a description, those given where it has none."""
    titled, described = _says(html)
    added = "" if titled else f"<title>{escape(title)}</title>"
    if description and not described:
        added += f'<meta name="description" content="{escape(description)}">'
    start = _PROLOGUE.match(html)
    place = start.end() if start else 0
    return html[:place] + added + html[place:]


def _says(html: str) -> tuple[bool, bool]:
    """Return whether a page's head has a title, and whether it has a description."""
    from turbohtml import TokenType, tokenize  # noqa: PLC0415  as in ``domains.sites.rules.html_import``

    titled = described = False
    drawings = 0
    for token in islice(tokenize(html), _MAX_TOKENS):
        if token.type is TokenType.START_TAG:
            if token.tag == "body":
                break
            drawings += token.tag == "svg" and not token.self_closing
            titled |= token.tag == "title" and not drawings
            if token.tag == "meta":
                described |= (token.attr("name") or "").lower() == "description"
        elif token.type is TokenType.END_TAG:
            if token.tag == "head":
                break
            drawings -= token.tag == "svg" and drawings > 0
    return titled, described


def with_beacon(html: str, hit_url: str, project_id: str, page_id: str) -> str:
    """Return a page with a line before its end that reports the visit, and keeps nothing."""
    url, site, page = (_in_script(text) for text in (hit_url, project_id, page_id))
    line = (
        f"<script>navigator.sendBeacon({url},JSON.stringify({{projectId:{site},pageId:{page},"
        "referrer:document.referrer}))</script>\n"
    )
    *_, last = (None, *_BODY_END.finditer(html))
    place = last.start() if last else len(html)
    return html[:place] + line + html[place:]


def _in_script(text: str) -> str:
    return to_json(text).decode().replace("<", "\\u003c")
