"""Tests of spellings of e-mail addresses."""

import pytest

from chalicelib.lib.emails import find_email

ADDRESSES = {
    "ada@example.com": "ada@example.com",
    "  Ada@Example.COM \n": "Ada@example.com",
    "Postmaster@example.com": "Postmaster@example.com",
    "ada.lovelace+news@example.co.uk": "ada.lovelace+news@example.co.uk",
    "o'hara@example.com": "o'hara@example.com",
    "ада@пример.рф": "ада@пример.рф",
    "ada@xn--e1afmkfd.xn--p1ai": "ada@пример.рф",
    "АДА@ПРИМЕР.РФ": "АДА@пример.рф",
    "chief@ЁЛКА.рф": "chief@ёлка.рф",
    "ada@faß.de": "ada@faß.de",
    "ada@FAẞ.de": "ada@faß.de",
    "ada@XN--FA-HIA.de": "ada@faß.de",
    "ada@ελλάς.gr": "ada@ελλάς.gr",
    "ﬁn@example.com": "ﬁn@example.com",
    "\ufeffada@example.com\u200b": "ada@example.com",
    "\u2068ada@exam\u00adple.com\u2069": "ada@example.com",
    "\u00a0ada@my\u2011shop.example\u202f": "ada@my-shop.example",
    "ada\u200d@example.com": "ada@example.com",
}
NO_ADDRESSES = ["", "ada", "ada@", "@example.com", "ada@example", "a b@example.com", "a@b@c.com"]


@pytest.mark.parametrize("text", ADDRESSES)
def test_all_spellings_of_an_address_have_one_form(text: str) -> None:
    assert find_email(text) == ADDRESSES[text]


@pytest.mark.parametrize("text", NO_ADDRESSES)
def test_an_invalid_address_is_rejected(text: str) -> None:
    assert find_email(text) is None
