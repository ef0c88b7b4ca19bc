"""URLs of sites and their pages."""

from urllib.parse import unquote, urlsplit

# The parameter of a page's address with the signature of a link to its draft. A page of a customer
# may have a parameter ``draft`` of its own.
DRAFT_PARAMETER = "_draft"
# Where a site lists the products of its workspace. Each product has a page below it.
PRODUCTS = "products"


def site_url(slug: str, *, public_url: str, sites_domain: str) -> str:
    """Return the URL of a site: a host below the sites' domain if configured, else ``/s/``."""
    # With a host of its own, the untrusted pages of a site share no cookies with the service.
    return f"https://{slug}.{sites_domain}" if sites_domain else f"{public_url}/s/{slug}"


def own_url(domain: str, *, public_url: str, local: bool) -> str:
    """Return the URL of a site on its own domain, with a ``local`` server's scheme and port."""
    if not local:
        return f"https://{domain}"
    parts = urlsplit(public_url)
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{domain}{port}"


def page_slug(
    url: str | None, public_url: str, *, site_slug: str, domain: str | None, sites_domain: str = ""
) -> str | None:
    """Return the slug of a site's page by its URL: "" for the home page, None for other URLs."""
    # Pages are at the root of the site's own host, or under ``/s/<site>`` of the service.
    try:
        parts = urlsplit(url or "")
        host = parts.hostname
    except ValueError:
        return None
    path = unquote(parts.path)
    own_hosts = {domain, f"{site_slug}.{sites_domain}" if sites_domain else None} - {None}
    if host in own_hosts:
        return path.strip("/")
    root = f"/s/{site_slug}"
    if parts.netloc != urlsplit(public_url).netloc or not f"{path}/".startswith(f"{root}/"):
        return None
    return path.removeprefix(root).strip("/")
