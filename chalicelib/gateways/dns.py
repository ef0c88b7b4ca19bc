"""Questions to the DNS. Tests replace ``lookup_txt`` and ``lookup_addresses``."""

from collections.abc import Callable

from chalicelib.core.deadline import Deadline

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


def _lookup_addresses(host: str, within: float) -> list[str]:
    import dns.exception  # noqa: PLC0415  only fetching asks for addresses
    import dns.resolver  # noqa: PLC0415

    deadline = Deadline(within)
    found: list[str] = []
    failure: dns.exception.DNSException | None = None
    for kind in ("A", "AAAA"):
        try:
            answer = dns.resolver.resolve(
                host, kind, raise_on_no_answer=False, lifetime=deadline.left()
            )
        except dns.resolver.NXDOMAIN:
            continue
        except dns.exception.DNSException as error:
            failure = error
        else:
            found += [record.address for record in answer]
    if failure and not found:  # many name servers fail for AAAA alone
        raise DnsUnavailableError from failure
    return found


lookup_addresses: Callable[[str, float], list[str]] = _lookup_addresses
"""Return a host's IP addresses, IPv4 first; none if there is no such host.

Asks name servers alone: neither the machine's own list of hosts nor its search domains, and unlike
the operating system's resolver it ends in time (``within``, in seconds).

Raises:
    DnsUnavailableError: nobody answered in time.
"""
