"""What pages have of other services: frames, such as maps and videos, and counters of visits."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from chalicelib.lib.markup.markup_urls import is_web, resolve

# Hosts of counters and advertising pixels. Their subdomains belong to them as well.
COUNTER_HOSTS = (
    "analytics.tiktok.com",
    "bat.bing.com",
    "clarity.ms",
    "connect.facebook.net",
    "counter.rambler.ru",
    "counter.yadro.ru",
    "google-analytics.com",
    "googletagmanager.com",
    "hotjar.com",
    "informer.yandex.ru",
    "kraken.rambler.ru",
    "mc.webvisor.org",
    "mc.yandex.com",
    "mc.yandex.ru",
    "px.ads.linkedin.com",
    "scorecardresearch.com",
    "static.getclicky.com",
    "stats.wp.com",
    "top-fwz1.mail.ru",
    "top100.ru",
)
# Hosts that serve other things, too, with the path of their pixel.
_COUNTER_PATHS = (("facebook.com", "/tr"), ("vk.com", "/rtrg"), ("vk.ru", "/rtrg"))
# A counter's URL in an attribute or in a script.
_COUNTER = re.compile(
    rf"(?:https?:)?//((?:[\w-]+\.)*(?:{'|'.join(map(re.escape, COUNTER_HOSTS))}))(?![\w.-])",
    re.IGNORECASE,
)
_FRAME = re.compile("<(?:iframe|frame|embed|object)\\b", re.IGNORECASE)
_SOURCES = {"iframe": "src", "frame": "src", "embed": "src", "object": "data"}
_SIZES = ("width", "height")
_LENGTH = re.compile(r"(?<![\w-])(width|height)\s*:\s*([0-9.]+)(?:px)?\s*(?=;|!|$)", re.IGNORECASE)
_FAR = re.compile(r"(?:left|top|right|bottom)\s*:\s*-[0-9]{3,}", re.IGNORECASE)


def needing_own_host(html: str, *, own_url: str) -> list[str]:
    """Return the hosts of a page's frames and counters, each once, in order of appearance."""
    # Frames and counters need cookies or an origin, which a page has only on a host of its own.
    # Frames of the service itself need neither.
    own_host = urlsplit(own_url).netloc.lower()
    hosts = dict.fromkeys(match[1].lower() for match in _COUNTER.finditer(html))
    if _FRAME.search(html):
        hosts = dict.fromkeys([*_frame_hosts(html, own_host=own_host), *hosts])
    return [host for host in hosts if host != own_host]


def _frame_hosts(html: str, *, own_host: str) -> list[str]:
    from turbohtml import TokenType, tokenize

    hosts = []
    for token in tokenize(html):
        if token.type is TokenType.START_TAG and (name := _SOURCES.get(token.tag or "")):
            url = resolve(token.attr(name) or "", base="")
            host = urlsplit(url).netloc.lower() if is_web(url) else own_host
            hosts.append(host)
    return hosts


def is_counter(url: str) -> bool:
    """Return whether an absolute URL is of a counter or of an advertising pixel."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    if any(host == name or host.endswith(f".{name}") for name in COUNTER_HOSTS):
        return True
    return any(
        (host == name or host.endswith(f".{name}")) and parts.path.startswith(path)
        for name, path in _COUNTER_PATHS
    )


def is_pixel(attributes: Mapping[str, str]) -> bool:
    """Return whether visitors do not see an image with these attributes, which only counts them."""
    style = attributes.get("style", "")
    sizes = {name: attributes.get(name, "").strip().removesuffix("px") for name in _SIZES}
    sizes |= {match[1].lower(): match[2] for match in _LENGTH.finditer(style)}
    return all(size in {"0", "1"} for size in sizes.values()) or _FAR.search(style) is not None
