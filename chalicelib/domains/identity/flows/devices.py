"""Recognise browsers, by a cookie, from which accounts have signed in.

Guessers of passwords have no such cookie. Attempts from a device count apart from theirs, so that
they cannot lock the owner of an account out (OWASP, Slow Down Online Guessing Attacks with Device
Cookies). The cookie is a random id and a proof for each account. It gives no access: its thief can
only guess within its limits. Nothing is stored.
"""

import hmac
import logging
import re
from secrets import token_urlsafe

from chalicelib.core.errors import NotConfiguredError, UnavailableError
from chalicelib.gateways.master_key import derived_token

MAX_ACCOUNTS = 20  # A browser may be a device of several: a shop's members may share one.
# The size of an id, and its characters in base64. A proof has as many characters.
_BYTES, _LENGTH = 16, 22
_COOKIE = re.compile(rf"[\w-]{{22}}(?:\.[\w-]{{22}}){{1,{MAX_ACCOUNTS}}}", re.ASCII)

log = logging.getLogger(__name__)


def id_for(cookie: str, *, account_id: str) -> str:
    """Return the id of a cookie's device if the account has signed in there, or ""."""
    if not _COOKIE.fullmatch(cookie):
        return ""
    device, *proofs = cookie.split(".")
    try:
        account_proof = _proof(device, account_id=account_id)
    except (NotConfiguredError, UnavailableError):
        # Without the key, the user can still sign in, within the limits of an unknown browser.
        log.warning("no device is recognised: the master key cannot be read", exc_info=True)
        return ""
    # The comparison takes constant time, so that a proof cannot be guessed byte by byte.
    return device if any(hmac.compare_digest(account_proof, proof) for proof in proofs) else ""


def add_account(cookie: str, *, account_id: str) -> str:
    """Return the cookie of a device on which an account has signed in. Raises as ``master_key``."""
    # Without a cookie, the device is a new one.
    parts = cookie.split(".") if _COOKIE.fullmatch(cookie) else [token_urlsafe(_BYTES)]
    device, account_proof = parts[0], _proof(parts[0], account_id=account_id)
    others = [proof for proof in parts[1:] if proof != account_proof]
    # The accounts that signed in last are kept.
    return ".".join((device, *others[1 - MAX_ACCOUNTS :], account_proof))


def _proof(device: str, *, account_id: str) -> str:
    return derived_token(f"device:{device}:{account_id}")[:_LENGTH]
