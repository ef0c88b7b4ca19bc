"""Page with the code that shows a bot on any web page, a preview, and the choice of a page."""

import re
from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import urlsplit

from chalicelib.core.errors import AppError
from chalicelib.core.settings import settings
from chalicelib.transports.chat import chat_route
from chalicelib.transports.console.bots.bots import agent, bot_page
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.sites import placing
from chalicelib.transports.console.sites.placing import Snippet
from chalicelib.transports.http import HttpResponse

# The colour of a widget whose tag names none (``widget.js``).
DEFAULT_COLOR = "#3257d6"
MAX_QUESTION = 80  # Maximum characters of a first question.
_VALID = {"color": "#[0-9a-fA-F]{6}", "position": "left|right", "theme": "light|dark"}
# Site builders that the pages with embed code have instructions for.
BUILDERS = ("tilda", "wordpress", "wix", "html")


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the embed code. With ``preview`` in the query, show the chat itself as well."""
    return _page(request, 200)


def place(request: ConsoleRequest) -> HttpResponse:
    """Add the embed code to a page of one of the workspace's sites."""
    try:
        return placing.place(request, _snippet(agent(request), _options(request)))
    except AppError as error:
        return _page(request, error.status, placing.problem(request, error))


def _options(request: ConsoleRequest) -> dict[str, str]:
    questions = [line.strip() for line in request.query_value("questions").splitlines()]
    options = {
        "color": request.query_value("color"),
        "position": request.query_value("position"),
        "theme": request.query_value("theme"),
        "questions": "|".join(line[:MAX_QUESTION] for line in questions if line),
    }
    return {
        name: option
        for name, option in options.items()
        if option and re.fullmatch(_VALID.get(name, ".*"), option) and option != DEFAULT_COLOR
    }


def _tag(bot: dict[str, Any], options: Mapping[str, str], *attributes: str) -> str:
    tag_options = (f'data-{name}="{escape(option)}"' for name, option in options.items())
    more = "".join(f" {attribute}" for attribute in (*tag_options, *attributes))
    url = f"{settings().public_url}/widget.js"
    return f'<script src="{url}" data-agent="{bot["id"]}"{more} async></script>'


def _snippet(bot: dict[str, Any], options: Mapping[str, str]) -> Snippet:
    # Without options, the tag up to "async" is in every earlier tag of the bot.
    return Snippet(_tag(bot, options), _tag(bot, {}).partition(" async")[0], "</script>")


def _page(request: ConsoleRequest, status: int, problem: Problem | None = None) -> HttpResponse:
    bot, options = agent(request), _options(request)
    shows_chat = bool(request.query_value("preview")) and bot["isActive"] and not bot["isPrivate"]
    response = bot_page(
        request,
        "bot_embed",
        tab="embed",
        status=status,
        problem=problem,
        code_text=_tag(bot, options),
        chosen={"color": DEFAULT_COLOR, "position": "", "theme": "", **options},
        questions=options.get("questions", "").replace("|", "\n"),
        query=request.query_with(preview=None, site=None),
        preview=_preview(request, bot, options) if shows_chat else "",
        builders=BUILDERS,
        **placing.places(request),
    )
    return _allow_chat(response) if shows_chat and settings().chat_url else response


def _preview(request: ConsoleRequest, bot: dict[str, Any], options: Mapping[str, str]) -> str:
    # The document is shown in a sandbox, without the console's cookies.
    tag = _tag(bot, options, "data-open", "data-preview")
    about = escape(request.translate("preview_page"))
    return (
        f'<!doctype html><html lang="{request.language}"><head><meta charset="utf-8">'
        f"<title>{about}</title></head><body><p>{about}</p>{tag}</body></html>"
    )


def _allow_chat(response: HttpResponse) -> HttpResponse:
    url = urlsplit(chat_route.url())
    policy = response.headers["Content-Security-Policy"].replace(
        "connect-src 'self'", f"connect-src 'self' {url.scheme}://{url.netloc}"
    )
    return response._replace(headers={**response.headers, "Content-Security-Policy": policy})
