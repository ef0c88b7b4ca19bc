"""Links to maps."""

from urllib.parse import quote

_YANDEX = "https://yandex.ru/maps/?text="
_GOOGLE = "https://www.google.com/maps/search/?api=1&query="
# Countries whose addresses Yandex knows better (ISO 3166-1 alpha-2).
_OF_YANDEX = frozenset({"AM", "BY", "KG", "KZ", "RU", "TJ", "UZ"})


def search_url(address: str, country: str) -> str:
    """Return the URL that shows an address on the maps that most people of a country use.

    >>> search_url("Arbat 1", "RU")
    'https://yandex.ru/maps/?text=Arbat%201'
    """
    return (_YANDEX if country in _OF_YANDEX else _GOOGLE) + quote(address, safe="")
