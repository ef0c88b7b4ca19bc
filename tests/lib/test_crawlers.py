"""Crawlers by their User-Agent header."""

import re

from chalicelib.lib.crawlers import is_bot


def test_browsers_are_distinguished_from_crawlers() -> None:
    people = [
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
            "Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0"
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, "
            "like Gecko) Version/19.0 Mobile/15E148 Safari/604.1"
        ),
        (
            "Mozilla/5.0 (Linux; Android 15; SM-S921B) AppleWebKit/537.36 (KHTML, like Gecko) "
            "Chrome/140.0.0.0 YaBrowser/25.8 Mobile Safari/537.36"
        ),
        "Mozilla/5.0 (Linux; Android 13; CUBOT X70) AppleWebKit/537.36 Chrome/120 Mobile",
    ]
    programs = [
        "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)",
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://x)",
        "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
        "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
        "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
        "python-requests/2.32.3 (a client of mine)",
        "Mozilla/5.0 (Macintosh) AppleWebKit/537.36 Chrome-Lighthouse",
        "TelegramBot (like TwitterBot)",
        "Mozilla",
    ]
    assert [name for name in people if is_bot(name)] == []
    assert [name for name in programs if not is_bot(name)] == []
    assert is_bot(None)
    assert re.search("bot", "x") is None
