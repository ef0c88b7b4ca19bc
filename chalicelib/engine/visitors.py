"""Visitors, who are known by a hash that changes every day; their IP address is kept nowhere.

The hash is keyed with a random salt of the date, which expires once that is over everywhere: then
nobody can try all IP addresses to find who a hash was (security.md, Visitors).
"""

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
FURTHEST_WEST = timedelta(hours=12)
"""How much later than in UTC a day may end, where it ends last."""
_HASH_CHARACTERS = 32


class SaltRow(ControlRow):
    """The salt of a day."""

    salt = UnicodeAttribute()


def visitor_hash(client_ip: str, day: date | None = None) -> str:
    """Return what a visitor is known by today; "" for ``client_ip`` is one visitor, too.

    Or on another ``day``: today's date where the visited site is, for its statistics.

    Raises:
        UnavailableError: the day's salt is out of reach.
    """
    salt = _salt(day or clock.now().date())
    digest = hmac.digest(salt.encode(), _network(client_ip).encode(), hashlib.sha256)
    return digest.hex()[:_HASH_CHARACTERS]


def forget() -> None:
    """Forget the salts that this process has read."""
    _salt.cache_clear()


def _network(client_ip: str) -> str:
    """Return what one visitor has: an IPv4 address, or an IPv6 network of 64 bits."""
    try:
        ip = ip_address(client_ip.partition("%")[0])
    except ValueError:
        return client_ip
    if not isinstance(ip, IPv6Address):
        return str(ip)
    return str(ip.ipv4_mapped or f"{int(ip) >> 64:016x}::/64")


@lru_cache(maxsize=4)
def _salt(day: date) -> str:
    """Return a day's salt: of all processes that make one, the first keeps its own."""
    ends = datetime.combine(day + timedelta(days=1), time(), clock.now().tzinfo) + FURTHEST_WEST
    row = SaltRow(f"SALT#{day.isoformat()}", SORT_KEY, salt=secrets.token_hex(32), expires=ends)
    found = SaltRow.find(row.pk, row.sk)
    if found is not None:
        return str(found.salt)
    try:
        row.save(condition=SaltRow.pk.does_not_exist())
    except PutError as error:
        if error_code(error) != CONDITION_FAILED:
            raise_failure(error)
        return _salt.__wrapped__(day)
    return str(row.salt)
