"""Visitors, identified by a hash that changes every day. Their IP address is not stored."""

import hashlib
import hmac
import secrets
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from pynamodb.attributes import UnicodeAttribute
from pynamodb.exceptions import PutError

from chalicelib.core import clock
from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure
from chalicelib.engine.tables import ControlRow

SORT_KEY = "-"
FURTHEST_WEST = timedelta(hours=12)  # A day ends this much later in the last time zone than in UTC.
_HASH_CHARACTERS = 32


class SaltRow(ControlRow):
    salt = UnicodeAttribute()


def visitor_hash(client_ip: str, day: date | None = None) -> str:
    """Return the visitor's hash for a day, by default today in UTC; "" counts as one visitor.

    Statistics pass today's date in the time zone of the visited site. Raises UnavailableError if
    the day's salt cannot be read.
    """
    salt = _salt(day or clock.now().date())
    digest = hmac.digest(salt.encode(), _network(client_ip).encode(), hashlib.sha256)
    return digest.hex()[:_HASH_CHARACTERS]


def network_hash(client_ip: str) -> str:
    """Return the hash of an IPv6 network of 48 bits (RFC 6177), or "". Raises as visitor_hash."""
    network = _network(client_ip)
    if not network.endswith("::/64"):
        return ""
    return visitor_hash(f"{network[:12]}::/48")


def forget() -> None:
    """Clear the salts that this process has read."""
    _salt.cache_clear()


def _network(client_ip: str) -> str:
    # One visitor has an IPv4 address or an IPv6 network of 64 bits.
    try:
        # A link-local address may end with a zone (RFC 4007, 11).
        ip = ip_address(client_ip.partition("%")[0])
    except ValueError:
        return client_ip
    if not isinstance(ip, IPv6Address):
        return str(ip)
    # A server for both protocols reports IPv4 addresses in the mapped form (RFC 4291, 2.5.5.2). A
    # tunnel has the IPv4 address of one visitor in many networks (RFC 3056, 2; RFC 4380, 4).
    tunnelled = ip.sixtofour or (ip.teredo and ip.teredo[1])
    return str(ip.ipv4_mapped or tunnelled or f"{int(ip) >> 64:016x}::/64")


@lru_cache(maxsize=4)
def _salt(day: date) -> str:
    ends = datetime.combine(day + timedelta(days=1), time(), clock.now().tzinfo) + FURTHEST_WEST
    # After the salt expires, the address cannot be found by hashing all addresses.
    row = SaltRow(f"SALT#{day.isoformat()}", SORT_KEY, salt=secrets.token_hex(32), expires=ends)
    salt_row = SaltRow.find(row.pk, row.sk)
    if salt_row is not None:
        return str(salt_row.salt)
    try:
        row.save(condition=SaltRow.pk.does_not_exist())
    except PutError as error:
        if error_code(error) != CONDITION_FAILED:
            raise_failure(error)
        # Another process has created the salt, which is kept.
        return _salt.__wrapped__(day)
    return str(row.salt)
