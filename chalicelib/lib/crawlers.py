"""Crawlers and other programs, recognised by their ``User-Agent`` header."""

import re

_BOT_NAMES = re.compile(
    r"(?<!cu)bot\b|bot[/_;)-]|crawl|spider|slurp|archiver|transcoder|monitor|preview|fetch|scan"
    r"|headless|phantomjs|puppeteer|playwright|selenium|webdriver|lighthouse|pagespeed|pingdom"
    r"|uptime|statuscake|validator|facebookexternalhit|facebot|embedly|mediapartners|google-"
    r"|bingpreview|yandex(?:\.com/bots|images|metrika|direct)|curl|wget|python|java/|okhttp"
    r"|go-http|libwww|httpclient|node-fetch|axios|ruby|perl|scrapy|postman|insomnia|http_request",
    re.IGNORECASE,
)
_MIN_LENGTH = 20  # Characters. Every browser sends a longer ``User-Agent``.


def is_bot(user_agent: str | None) -> bool:
    """Whether a ``User-Agent`` names a program, is missing, or is too short for a browser."""
    return (
        user_agent is None
        or len(user_agent) < _MIN_LENGTH
        or _BOT_NAMES.search(user_agent) is not None
    )
