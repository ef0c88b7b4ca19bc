"""Validate custom domains and the TXT record that proves their owner."""

from functools import cache
from typing import Any

_FORBIDDEN_CHARACTERS = frozenset("/:@?#*%\\ \t\r\n")


@cache
def _public_suffixes() -> Any:  # noqa: ANN401  the library has no types
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


def normalize(name: str, *own_hosts: str) -> str:
    """Return a host name in lower case and punycode, without a final dot.

    Raises:
        ValueError: the name is not a plain host name (a URL, port, path, wildcard or IP address),
            is invalid, is a public suffix such as co.uk, or is one of ``own_hosts`` or below one.
    """
    import idna

    name = name.strip()
    if _FORBIDDEN_CHARACTERS & set(name):
        raise ValueError("expected a host name without a scheme, port, path or wildcard")
    try:
        host = idna.encode(name, uts46=True).decode().rstrip(".")
    except idna.IDNAError:
        msg = (
            "expected labels of 1 to 63 letters, digits and hyphens, without a hyphen at the "
            "start or end"
        )
        raise ValueError(msg) from None
    last = host.rpartition(".")[2]
    if last.isdigit() or last.startswith("0x"):  # Browsers read it as an IPv4 address.
        raise ValueError("expected a host name, not an IP address")
    if "." not in host:
        raise ValueError("expected a full host name, such as www.example.com")
    if _public_suffixes().is_public(host):
        raise ValueError("expected your own host name, received a public suffix")
    if any(f".{host}".endswith(f".{own_host}") for own_host in filter(None, own_hosts)):
        raise ValueError("expected your own host name, received a name of the platform")
    return host


def is_apex(host: str) -> bool:
    """Return whether a host is the name that is registered, such as example.co.uk."""
    return bool(_public_suffixes().privatesuffix(host) == host)


def txt_record_name(domain: str) -> str:
    """Return the host name of the TXT record that proves ownership of a domain."""
    return f"_svc-verify.{domain}"


def txt_record_value(token: str) -> str:
    """Return the value of the TXT record that proves ownership of a domain."""
    return f"svc-verify={token}"
