"""Signed links that show the draft of a page as visitors would see it.

Nothing is stored: a link is computed with the master key, and ends by itself.
"""

import hmac
import re
from datetime import timedelta

from chalicelib.core import clock
from chalicelib.domains.sites.rules.site_urls import DRAFT_PARAMETER
from chalicelib.domains.sites.store.pages import PageRow
from chalicelib.gateways.master_key import derived_token

LASTS = timedelta(hours=1)
_TOKEN = re.compile(r"([0-9]{1,12})\.([\w-]{43})", re.ASCII)


def preview_url(workspace_id: str, page: PageRow) -> str:
    """Return the link to the draft of a page. Raises the errors of ``master_key``."""
    until = int((clock.now() + LASTS).timestamp())
    return (
        f"{page.canonical_url}?{DRAFT_PARAMETER}={until}.{_signature(workspace_id, page.id, until)}"
    )


def is_valid(token: str, workspace_id: str, page_id: str) -> bool:
    """Whether a link is one to the draft of this page, and has not ended."""
    match = _TOKEN.fullmatch(token)
    if match is None or int(match[1]) <= clock.now().timestamp():
        return False
    # The comparison takes constant time, so that a signature cannot be guessed byte by byte.
    return hmac.compare_digest(_signature(workspace_id, page_id, int(match[1])), match[2])


def _signature(workspace_id: str, page_id: str, until: int) -> str:
    return derived_token(f"page-draft\0{workspace_id}\0{page_id}\0{until}")
