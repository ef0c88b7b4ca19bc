"""DNS look-ups, which tests replace."""

from collections.abc import Callable

from chalicelib.core.deadline import Deadline

TIMEOUT_SECONDS = 4.0


class DnsUnavailableError(Exception):
    """No name server answered in time. The record may or may not exist."""


def _lookup_txt(host: str) -> frozenset[str]:
    import dns.exception
    import dns.resolver

    try:
        answer = dns.resolver.resolve(host, "TXT", lifetime=TIMEOUT_SECONDS)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return frozenset()
    except dns.exception.DNSException as error:
        raise DnsUnavailableError from error
    # A TXT record consists of strings of up to 255 bytes, which are joined (RFC 7208, 3.3).
    return frozenset(b"".join(record.strings).decode(errors="replace") for record in answer)


# Returns the strings of a host's TXT records. Raises DnsUnavailableError if no name server answered
# within four seconds.
lookup_txt: Callable[[str], frozenset[str]] = _lookup_txt


def _lookup_addresses(host: str, timeout_seconds: float) -> list[str]:
    import dns.exception
    import dns.resolver

    deadline = Deadline(timeout_seconds)
    addresses: list[str] = []
    failure: dns.exception.DNSException | None = None
    for kind in ("A", "AAAA"):
        try:
            answer = dns.resolver.resolve(
                host, kind, raise_on_no_answer=False, lifetime=deadline.seconds_left()
            )
        except dns.resolver.NXDOMAIN:
            continue
        except dns.exception.DNSException as error:
            failure = error
        else:
            addresses += [record.address for record in answer]
    if failure and not addresses:  # many name servers fail for AAAA queries only
        raise DnsUnavailableError from failure
    return addresses


# Returns the IP addresses of a host, IPv4 first, or none if it does not exist. Raises
# DnsUnavailableError if no name server answered in time. The hosts file and the search domains of
# the machine are ignored, and, unlike the resolver of the operating system, the look-up ends after
# ``timeout_seconds``.
lookup_addresses: Callable[[str, float], list[str]] = _lookup_addresses
