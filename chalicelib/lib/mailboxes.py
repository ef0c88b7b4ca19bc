"""Tell which spellings of an e-mail address lead to one mailbox, to count what it gets."""

import hashlib
import unicodedata
from collections.abc import Mapping

from chalicelib.lib import emails

_YANDEX = (
    "yandex.ru ya.ru yandex.com yandex.by yandex.kz yandex.ua yandex.uz yandex.az yandex.ee"
    " yandex.fr yandex.kg yandex.lt yandex.lv yandex.md yandex.tj yandex.tm yandex.com.am"
    " yandex.com.ge yandex.com.tr yandex.co.il narod.ru"
)
_PROVIDERS: Mapping[str, dict[str, str]] = {
    "gmail.com googlemail.com": {".": ""},
    _YANDEX: {".": "-"},
    "proton.me protonmail.com protonmail.ch pm.me": {".": "", "-": "", "_": ""},
    "icloud.com me.com mac.com": {},
}
"""Domains of a provider that lead to the same mailboxes, and how it folds characters."""
_FOLDS = {
    domain: (domains.partition(" ")[0], str.maketrans(folded))
    for domains, folded in _PROVIDERS.items()
    for domain in domains.split()
}


def mailbox_key(address: str) -> str:
    """Return the hash of the mailbox that an address leads to, under which its e-mails are counted.

    A tag after a plus sign and the case do not count. Large providers have several domains and
    spellings of one mailbox. Only budgets fold these: elsewhere two spellings are two addresses
    (``emails.key``).
    """
    local, _, domain = emails.key(address).rpartition("@")
    local = unicodedata.normalize("NFKC", local).casefold()
    local = local.partition("+")[0] or local
    domain, folds = _FOLDS.get(domain, (domain, {}))
    local = local.translate(folds) or local
    return hashlib.sha256(f"{local}@{domain}".encode()).hexdigest()
