"""URLs of sites and of their pages."""

import pytest

from chalicelib.domains.sites.rules.site_urls import own_url, page_slug, site_url

SERVICE = "http://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("url", "slug"),
    [
        (f"{SERVICE}/s/bakery/about", "about"),
        (f"{SERVICE}/s/bakery/about/?utm_source=x", "about"),
        (f"{SERVICE}/s/bakery/%D0%BE", "о"),
        (f"{SERVICE}/s/bakery", ""),
        ("https://www.example.com/about/", "about"),
        ("https://www.example.com/", ""),
        (f"{SERVICE}/s/bakery2/about", None),
        (f"{SERVICE}/s/other/about", None),
        ("https://elsewhere.example/s/bakery/about", None),
        ("https://bakery.sites.example/about", None),
        ("https://bakery./about", None),
        ("", None),
        (None, None),
        ("/about", None),
        ("http://[broken", None),
    ],
)
def test_a_sites_page_is_recognised_by_its_url(url: str | None, slug: str | None) -> None:
    assert page_slug(url, SERVICE, site_slug="bakery", domain="www.example.com") == slug


def test_a_sites_page_is_recognised_on_its_host_below_the_sites_domain() -> None:
    url = "https://bakery.sites.example/about"
    assert (
        page_slug(url, SERVICE, site_slug="bakery", domain=None, sites_domain="sites.example")
        == "about"
    )
    assert (
        page_slug("/about", SERVICE, site_slug="bakery", domain=None, sites_domain="sites.example")
        is None
    )


def test_a_site_has_a_host_below_the_sites_domain_if_there_is_one() -> None:
    assert site_url("bakery", public_url=SERVICE, sites_domain="") == f"{SERVICE}/s/bakery"
    assert (
        site_url("bakery", public_url=SERVICE, sites_domain="sites.example")
        == "https://bakery.sites.example"
    )


@pytest.mark.parametrize(
    ("public_url", "local", "url"),
    [
        (SERVICE, True, "http://www.example.com:8000"),
        ("http://localhost", True, "http://www.example.com"),
        (SERVICE, False, "https://www.example.com"),
    ],
)
def test_a_domain_of_a_site_has_the_port_of_a_local_server(
    public_url: str, local: bool, url: str
) -> None:
    assert own_url("www.example.com", public_url=public_url, local=local) == url
