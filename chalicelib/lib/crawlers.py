"""Programs that read pages: by the name that they give themselves, as honest ones do."""

import re

_NAMES = re.compile(
    r"(?<!cu)bot\b|bot[/_;)-]|crawl|spider|slurp|archiver|transcoder|monitor|preview|fetch|scan"
    r"|headless|phantomjs|puppeteer|playwright|selenium|webdriver|lighthouse|pagespeed|pingdom"
    r"|uptime|statuscake|validator|facebookexternalhit|facebot|embedly|mediapartners|google-"
    r"|bingpreview|yandex(?:\.com/bots|images|metrika|direct)|curl|wget|python|java/|okhttp"
    r"|go-http|libwww|httpclient|node-fetch|axios|ruby|perl|scrapy|postman|insomnia|http_request",
    re.IGNORECASE,
)
_MIN_LENGTH = 20
"""No browser's name is so short."""


def is_bot(user_agent: str | None) -> bool:
    """Whether a ``User-Agent`` names a program, or nothing that a browser would."""
    return (
        user_agent is None or len(user_agent) < _MIN_LENGTH or _NAMES.search(user_agent) is not None
    )
