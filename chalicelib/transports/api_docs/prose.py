"""Convert the reference's Markdown to HTML, and highlight code. No input of callers comes here."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from chalicelib.core import manifest
from chalicelib.lib.markup import templates
from chalicelib.transports.prompts import PROMPTS

if TYPE_CHECKING:
    from jinja2 import Environment
    from markdown_it import MarkdownIt

    from chalicelib.transports.api_docs.model import Reference

GUIDES_FOLDER = Path(__file__).parent / "guides"
# A link that leads to a file of the repository, whose address a server does not know.
_FILE_LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+:|/|#)[^)\s]*\)")
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
# The parts of code that are highlighted: keys, strings, numbers, constants and first words.
_TOKEN = re.compile(
    r"""(?P<k>"(?:\\.|[^"\\\n])*")(?=\s*:)|(?P<s>"(?:\\.|[^"\\\n])*"|'http[^'\n]*')"""
    r"""|(?<![\w.-])(?P<n>-?\d[\d._]*|true|false|null|True|False|None)(?![\w.-])"""
    r"""|^(?P<w>import|from|for|if|async|await|const|let|curl|claude|npx|data)\b""",
    re.MULTILINE,
)


class Guide(NamedTuple):
    """A page of prose, whose file has the same name."""

    name: str
    title: str
    about: str


START = Guide(
    "start", "API reference", "How to call the REST API and the tool server, and all operations."
)
# Guides in the order of the navigation, after the start page.
GUIDES = (
    Guide("authentication", "Authentication and scopes", "Keys, scopes, and the rights of a key."),
    Guide("errors", "Envelope and errors", "The form of every response, and all error codes."),
    Guide("conventions", "Conventions", "Units, null, lists, idempotency, dry runs, versions."),
    Guide("limits", "Limits", "Rates and sizes, and how they are counted."),
    Guide("events", "Events", "The events that webhooks receive."),
    Guide("tool-server", "Tool server", "The same operations for AI clients, with MCP."),
)
CHANGELOG = Guide("changelog", "Changelog", "What has changed in each release of the service.")


class Heading(NamedTuple):
    level: int
    anchor: str
    text: str


def slug(text: str) -> str:
    """Return the anchor of a heading, built as GitHub does for plain words."""
    return _NOT_SLUG.sub("-", text.lower()).strip("-")


@lru_cache(maxsize=32)
def guide(name: str, reference: "Reference") -> str:
    """Return a guide's Markdown, with the values of the registry filled in."""
    text: str = _guides().get_template(f"{name}.md").render(reference=reference)
    return text.strip() + "\n"


@cache
def changelog() -> str:
    """Return the changelog as Markdown, without its title and its links to other files."""
    text = manifest.changelog().partition("\n")[2].strip()
    return _FILE_LINK.sub(r"\1", text) + "\n"


def has_guide(name: str) -> bool:
    """Whether there is a guide of this name."""
    return (GUIDES_FOLDER / f"{name}.md").is_file()


@cache
def _guides() -> "Environment":
    from chalicelib.core import events
    from chalicelib.domains.catalog.flows import barcodes
    from chalicelib.domains.files.flows import photos

    environment = templates.environment(GUIDES_FOLDER, autoescape=False)
    environment.filters["thousands"] = "{:,}".format
    environment.globals |= {"barcodes": barcodes, "events": events, "photos": photos}
    environment.globals["prompts"] = PROMPTS
    return environment


@lru_cache(maxsize=64)
def to_html(markdown: str) -> str:
    """Return Markdown as HTML, with anchors for headings and highlighted code."""
    html: str = _parser().render(markdown)
    return html


@lru_cache(maxsize=4096)
def inline(markdown: str) -> str:
    """Return a line of Markdown as HTML."""
    html: str = _parser().renderInline(markdown)
    return html


def headings(markdown: str) -> Iterator[Heading]:
    """Yield the headings of a guide."""
    return (heading for heading, _ in sections(markdown) if heading is not None)


def sections(markdown: str) -> Iterator[tuple[Heading | None, str]]:
    """Yield each heading with its section's Markdown, and the introduction first, under None."""
    heading: Heading | None = None
    texts: list[str] = []
    tokens = _parser().parse(markdown)
    for previous, token in zip([None, *tokens], tokens, strict=False):
        if previous is not None and previous.type == "heading_open":
            yield heading, " ".join(texts)
            heading, texts = Heading(int(previous.tag[1]), slug(token.content), token.content), []
        elif token.content:
            texts.append(token.content)
    yield heading, " ".join(texts)


def coloured(code: str) -> str:
    """Return highlighted code as HTML."""
    parts, end = [], 0
    for token in _TOKEN.finditer(code):
        parts.append(escape(code[end : token.start()], quote=False))
        escaped = escape(token[0], quote=False)
        parts.append(f'<b class="{token.lastgroup}">{escaped}</b>')
        end = token.end()
    return "".join(parts) + escape(code[end:], quote=False)


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("heading_open", _heading)
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("th_open", lambda *_: '<th scope="col">')
    return parser


def _heading(_self: Any, tokens: Any, at: int, *_: object) -> str:  # noqa: ANN401  a type of markdown-it
    anchor = slug(tokens[at + 1].content)
    # Versions of the changelog have parts of the same name. GitHub numbers them in this way, too.
    before = [slug(tokens[n + 1].content) for n in range(at) if tokens[n].type == "heading_open"]
    number = before.count(anchor)
    return f'<{tokens[at].tag} id="{anchor}{f"-{number}" if number else ""}">'


def _fence(_self: Any, tokens: Any, at: int, *_: object) -> str:  # noqa: ANN401  as above
    code = tokens[at].content.rstrip("\n")
    return f'<pre class="code" tabindex="0"><code>{coloured(code)}</code></pre>\n'
