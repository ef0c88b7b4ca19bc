"""URLs that may be fetched, their normal form, and public IP addresses."""

from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.lib.public_urls import MAX_LENGTH, is_public, parse

EMBEDDINGS = {
    "mapped": lambda v4: (0xFFFF << 32) | v4,
    "compatible": lambda v4: v4,
    "translated (SIIT)": lambda v4: (0xFFFF << 48) | v4,
    "NAT64": lambda v4: (0x0064FF9B << 96) | v4,
    "local NAT64": lambda v4: (0x0064FF9B0001 << 80) | v4,
    "6to4": lambda v4: (0x2002 << 112) | (v4 << 80) | 1,
    "Teredo server": lambda v4: (0x20010000 << 96) | (v4 << 64) | 1,
    "Teredo client": lambda v4: (0x20010000 << 96) | (0x08080808 << 64) | (v4 ^ 0xFFFFFFFF),
    "ISATAP": lambda v4: (0x2A001450 << 96) | (0x5EFE << 32) | v4,
    "ISATAP, global": lambda v4: (0x2A001450 << 96) | (0x02005EFE << 32) | v4,
}
SPECIAL = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/96",
    "::ffff:0:0/96",
    "::ffff:0:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "4000::/2",
    "5f00::/16",
    "fc00::/7",
    "fd00:ec2::254/128",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "172.32.0.1",
    "198.20.0.1",
    "223.255.255.255",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2a00:1450:4001:82a::200e",
]

any_v4 = st.integers(0, 2**32 - 1)
any_v6 = st.one_of(
    st.integers(0, 2**128 - 1),
    st.integers(0, 2**125 - 1).map(lambda low: low | 1 << 125),
)
in_a_special_block = st.sampled_from(SPECIAL).flatmap(
    lambda block: st.integers(0, ip_network(block).num_addresses - 1).map(
        lambda offset: str(ip_network(block)[offset])
    )
)


class TestIsPublic:
    @pytest.mark.parametrize("address", PUBLIC)
    def test_addresses_of_the_public_internet_are_public(self, address: str) -> None:
        assert is_public(address)

    @pytest.mark.parametrize("block", SPECIAL)
    def test_both_ends_of_every_special_block_are_not_public(self, block: str) -> None:
        assert not is_public(str(ip_network(block)[0]))
        assert not is_public(str(ip_network(block)[-1]))

    @given(in_a_special_block)
    def test_addresses_inside_a_special_block_are_not_public(self, address: str) -> None:
        assert not is_public(address)

    @given(any_v4)
    def test_ipv4_addresses_that_python_does_not_call_global_are_not_public(
        self, number: int
    ) -> None:
        ip = IPv4Address(number)
        if not ip.is_global or ip.is_multicast or ip.is_reserved:
            assert not is_public(str(ip))

    @given(any_v6)
    def test_ipv6_addresses_that_python_does_not_call_global_are_not_public(
        self, number: int
    ) -> None:
        ip = IPv6Address(number)
        if not ip.is_global or ip.is_multicast or ip.is_site_local or ip.is_reserved:
            assert not is_public(str(ip))
        if ip.ipv4_mapped or ip.sixtofour or ip.teredo:
            assert not is_public(str(ip))

    @pytest.mark.parametrize("form", EMBEDDINGS)
    @given(number=any_v4)
    @example(number=int(IPv4Address("127.0.0.1")))
    @example(number=int(IPv4Address("169.254.169.254")))
    @example(number=int(IPv4Address("8.8.8.8")))
    def test_ipv6_addresses_that_contain_an_ipv4_address_are_not_public(
        self, form: str, number: int
    ) -> None:
        assert not is_public(str(IPv6Address(EMBEDDINGS[form](number))))

    @given(any_v4.filter(lambda number: is_public(str(IPv4Address(number)))))
    def test_any_address_is_public_only_outside_all_special_blocks(self, number: int) -> None:
        ip = IPv4Address(number)
        assert not any(ip in ip_network(block) for block in SPECIAL)


class TestParse:
    @pytest.mark.parametrize(
        ("url", "parsed"),
        [
            ("https://example.com", "https://example.com/"),
            ("HTTPS://Example.COM/A?b=C#d", "https://example.com/A?b=C"),
            ("https://example.com./", "https://example.com/"),
            ("https://example.com:443/", "https://example.com/"),
            ("https://example.com:/", "https://example.com/"),
            ("https://example.com:80/", "https://example.com:80/"),
            ("https://example.com?a=b/c", "https://example.com/?a=b/c"),
            ("https://example.com#a/b", "https://example.com/"),
            ("https://example.com/a%20b%zz", "https://example.com/a%20b%zz"),
            (" https://example.com/my image.jpg\n", "https://example.com/my%20image.jpg"),
            ("https://example.com/ё?q=\"<'>", "https://example.com/%D1%91?q=%22%3C'%3E"),
            ("https://example.com/a@b:c//d", "https://example.com/a@b:c//d"),
            ("https://пример.рф/", "https://xn--e1afmkfd.xn--p1ai/"),
            ("https://faß.de/", "https://xn--fa-hia.de/"),
            ("https://exa\N{KELVIN SIGN}ple.com/", "https://exakple.com/"),
            ("https://example\N{IDEOGRAPHIC FULL STOP}com/", "https://example.com/"),
            ("https://my_bucket.s3-.example.com/", "https://my_bucket.s3-.example.com/"),
            ("https://93.184.216.34/", "https://93.184.216.34/"),
            ("https://93.184.216.34./", "https://93.184.216.34/"),
            ("https://９３.184.216.３４/", "https://93.184.216.34/"),
            ("https://[2606:4700:0:0::1111]/", "https://[2606:4700::1111]/"),
            ("https://[2606:4700::1111]:80/", "https://[2606:4700::1111]:80/"),
        ],
    )
    def test_a_url_is_normalised(self, url: str, parsed: str) -> None:
        assert str(parse(url)) == parsed

    def test_http_is_accepted_only_if_the_caller_allows_it(self) -> None:
        assert str(parse("http://example.com:80/", allow_http=True)) == "http://example.com/"
        assert str(parse("http://example.com:443", allow_http=True)) == "http://example.com:443/"
        with pytest.raises(ValueError, match="begins with https://, not with http:"):
            parse("http://example.com/")

    @pytest.mark.parametrize(
        ("url", "problem"),
        [
            ("ftp://example.com/", "begins with https://, not with ftp:"),
            ("example.com", "full URL that begins with https://"),
            ("https://u:p@example.com/", "without a user name or password"),
            ("https://example.com:8443/", "port 80 or 443, not 8443"),
            ("https:///a", "after the two slashes"),
            ("https://0x7f.1/", "four decimal numbers"),
            ("https://intranet/", "full host name"),
            ("https://[fe80::1%25eth0]/", "IPv6 address, without a zone"),
            ("https://example.com\\@10.0.0.1/", "without backslashes"),
            ("https://" + "a" * MAX_LENGTH, "at most 4096 characters, not 4104"),
        ],
    )
    def test_an_invalid_url_is_refused_with_a_reason(self, url: str, problem: str) -> None:
        with pytest.raises(ValueError, match=r"^expected ") as refusal:
            parse(url)
        assert problem in str(refusal.value)

    @given(st.one_of(st.text(), st.text(".:/@[]%0x17fа。\\ ?#-_").map("https://{}".format)))
    def test_any_text_is_a_clean_url_or_has_a_clear_error(self, url: str) -> None:
        place = None
        with suppress(ValueError):
            place = parse(url)
        if place is None:
            with pytest.raises(ValueError, match=r"^expected "):
                parse(url)
            return
        assert place.target.startswith("/")
        assert all("!" <= character <= "~" for character in str(place))
        assert parse(str(place)) == place
        if place.is_ip_address:
            assert str(ip_address(place.host)) == place.host
        else:
            assert not place.host.rpartition(".")[2].isdigit()
