"""Names of browsers and systems, as the list of sessions shows them."""

# The order matters, because each browser also claims to be the later ones.
_BROWSERS = {
    "YaBrowser/": "Yandex Browser",
    "SamsungBrowser/": "Samsung Internet",
    "Edg/": "Edge",
    "EdgA/": "Edge",
    "EdgiOS/": "Edge",
    "OPR/": "Opera",
    "OPT/": "Opera",
    "FxiOS/": "Firefox",
    "Firefox/": "Firefox",
    "CriOS/": "Chrome",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
_SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}


def browser_name(user_agent: str) -> str:
    """Return the names of browser and system in a ``User-Agent``, or "" if unknown."""
    browser = next((name for token, name in _BROWSERS.items() if token in user_agent), "")
    system = next((name for token, name in _SYSTEMS.items() if token in user_agent), "")
    return ", ".join(filter(None, (browser, system)))
