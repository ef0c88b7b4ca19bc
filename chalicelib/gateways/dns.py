"""Questions to the DNS. Tests replace ``lookup_txt``."""

from collections.abc import Callable

TIMEOUT_SECONDS = 4.0


class DnsUnavailableError(Exception):
    """No name server gave an answer in time; the record may or may not exist."""


def _lookup_txt(host: str) -> frozenset[str]:
    import dns.exception  # noqa: PLC0415  only binding a domain asks the DNS
    import dns.resolver  # noqa: PLC0415

    try:
        answer = dns.resolver.resolve(host, "TXT", lifetime=TIMEOUT_SECONDS)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return frozenset()
    except dns.exception.DNSException as error:
        raise DnsUnavailableError from error
    return frozenset(b"".join(record.strings).decode(errors="replace") for record in answer)


lookup_txt: Callable[[str], frozenset[str]] = _lookup_txt
"""Return the texts of a host's TXT records.

Raises:
    DnsUnavailableError: nobody answered within four seconds.
"""
