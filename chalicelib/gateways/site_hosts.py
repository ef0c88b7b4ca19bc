"""Hosts of customers' sites: TLS and routing for domains that customers own.

``SITE_HOSTS`` chooses the gateway. On AWS each host is a distribution tenant of CloudFront
(``gateways.cloudfront_hosts``). The local server needs no set-up: it finds the site by the ``Host``
header. Without a gateway, sites have no hosts of their own (ADR 48).
"""

from typing import Literal, NamedTuple, Protocol

from chalicelib.core.settings import settings

LOOPBACK = "127.0.0.1"
LOCALHOST = ".localhost"
"""Names below ``localhost`` lead to the machine itself, and no DNS has them (RFC 6761, 6.3)."""


class Address(NamedTuple):
    """Type and value of the DNS record that leads a host to the installation."""

    type: str
    value: str


class HostState(NamedTuple):
    """Progress of a host, with the reason for a wait or a failure.

    ``waiting``: the DNS does not lead here. ``certificate``: the TLS certificate is being made.
    """

    state: Literal["waiting", "certificate", "active", "failed"]
    reason: str | None = None


class SiteHosts(Protocol):
    """A gateway for hosts. Its calls may be repeated: each reads the state and changes the rest."""

    def address(self, *, apex: bool) -> Address:
        """Return the record to set. An ``apex`` is a domain without a label before it."""

    def proves(self, host: str) -> bool:
        """Whether a host needs no proof of ownership."""

    def serve(self, host: str) -> HostState:
        """Take the next step towards serving a host, and return its state.

        Raises:
            UnavailableError: the service that serves hosts refused or did not answer.
        """

    def release(self, host: str) -> bool:
        """Take the next step towards no longer serving a host; return whether that is done.

        Raises:
            UnavailableError: as ``serve`` does.
        """


class LocalHosts:
    """Hosts of the local server, which serves every domain that a site has proven."""

    def address(self, *, apex: bool) -> Address:  # noqa: ARG002  the protocol's
        """Return the machine's own address."""
        return Address("A", LOOPBACK)

    def proves(self, host: str) -> bool:
        """Whether the host is below ``localhost``."""
        return host.endswith(LOCALHOST)

    def serve(self, host: str) -> HostState:  # noqa: ARG002
        """Return that the host is active."""
        return HostState("active")

    def release(self, host: str) -> bool:  # noqa: ARG002
        """Return that there is nothing to release."""
        return True


def site_hosts() -> SiteHosts | None:
    """Return the gateway that the settings choose, or None if sites have no hosts of their own."""
    chosen = settings().site_hosts
    if not chosen:
        return None
    if chosen == "local":
        return LocalHosts()
    from chalicelib.gateways.cloudfront_hosts import CloudFrontHosts

    return CloudFrontHosts.named(chosen, settings().stage)
