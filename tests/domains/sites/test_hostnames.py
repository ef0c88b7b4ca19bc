"""Host names of custom domains."""

import pytest

from chalicelib.domains.sites.rules.hostnames import normalize

OWN_HOSTS = ("", "platform.example", "sites.example")


@pytest.mark.parametrize(
    ("entered", "name"),
    [
        ("Shop.Example.COM", "shop.example.com"),
        (" example.com. ", "example.com"),
        ("Пекарня.рф", "xn--80ajpngj0i.xn--p1ai"),
        ("bücher.example.co.uk", "xn--bcher-kva.example.co.uk"),
        ("ｓｈｏｐ。example．com｡", "shop.example.com"),
        ("a1.0xbakery.com", "a1.0xbakery.com"),
        ("my-platform.example", "my-platform.example"),
        ("mysites.example", "mysites.example"),
        (".".join(["a" * 63, "a" * 63, "a" * 63, "a" * 57, "com"]), None),
    ],
)
def test_a_host_name_is_normalized(entered: str, name: str | None) -> None:
    assert normalize(entered, *OWN_HOSTS) == (name or entered)


@pytest.mark.parametrize(
    ("reason", "names"),
    [
        (
            "host name without a scheme",
            [
                *("https://example.com", "example.com:443", "example.com/shop", "::1", "[::1]"),
                *("user@example.com", "*.example.com", "exa mple.com", "127.0.0.1:8000"),
            ],
        ),
        (
            "labels of 1 to 63",
            [
                *("", ".", "example..com", "-a.example.com", "a_b.example.com", "\x00.com"),
                *("xn--a.example.com", "exa／mple.com", "a" * 64 + ".example.com"),
                ".".join(["a" * 63, "a" * 63, "a" * 63, "a" * 58, "com"]),
            ],
        ),
        (
            "not an IP address",
            ["127.0.0.1", "1.2.3", "0x7f.1", "example.0x7f", "127。0。0。1", "１２７.0.0.１."],
        ),
        ("full host name", ["localhost", "com", "рф", "localhost。"]),
        ("public suffix", ["co.uk", "github.io", "CO。UK。"]),
        (
            "a name of the platform",
            [
                "platform.example",
                "Shop.Sites.Example",
                "platform。example。",
                "a.platform.example.",
            ],
        ),
    ],
)
def test_other_names_are_refused_with_the_reason(reason: str, names: list[str]) -> None:
    for name in names:
        with pytest.raises(ValueError, match=reason):
            normalize(name, *OWN_HOSTS)
