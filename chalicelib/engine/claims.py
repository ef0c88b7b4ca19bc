"""Claims: what may exist once. A claim is written in the transaction that makes the thing it names.

Platform-wide claims (a site's slug, an account's e-mail) live in ``identity`` and double as the
look-up from a name that arrives without a workspace. What is unique inside a workspace is a
``Lookup`` of its listing.
"""

import hashlib
from collections.abc import Iterable

from pynamodb.attributes import UnicodeAttribute

from chalicelib.core.text import fold
from chalicelib.engine.connection import reaching
from chalicelib.engine.tables import IdentityRow

SORT_KEY = "-"


class ClaimRow(IdentityRow):
    """A platform-wide claim.

    ``target`` is the id it leads to, ``workspace_id`` the workspace, if any.
    """

    target = UnicodeAttribute()
    workspace_id = UnicodeAttribute(null=True)

    @classmethod
    def find_claim(cls, kind: str, name: str) -> "ClaimRow | None":
        """Return who holds a name, or None."""
        return cls.find(f"CLAIM#{kind}#{name}", SORT_KEY)

    @classmethod
    def workspace_of(cls, kind: str, name: str) -> str | None:
        """Return the workspace of who holds a name, or None."""
        held = cls.find_claim(kind, name)
        return held.workspace_id if held else None

    @classmethod
    def taken(cls, kind: str, names: Iterable[str]) -> set[str]:
        """Return which of the names are held, in one round trip."""
        keys = {f"CLAIM#{kind}#{name}": name for name in names}
        with reaching():
            return {
                keys[row.pk]
                for row in cls.batch_get([(pk, SORT_KEY) for pk in keys], consistent_read=True)
            }


def claim(kind: str, name: str, target: str, workspace_id: str | None = None) -> ClaimRow:
    """Return the row that claims a name platform-wide."""
    return ClaimRow(f"CLAIM#{kind}#{name}", SORT_KEY, target=target, workspace_id=workspace_id)


def name_hash(text: str, within: str = "") -> str:
    """Return what a text that people give is claimed by; texts that compare alike share it.

    A hash, for folding can make a text longer than a key may be: U+FDFA becomes 18 letters.
    """
    return hashlib.sha256(f"{within}\0{fold(text)}".encode()).hexdigest()
