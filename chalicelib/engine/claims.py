"""Claims of platform-wide names, such as a site's slug, which lead to their workspace."""

import hashlib
from collections.abc import Iterable

from pynamodb.attributes import UnicodeAttribute

from chalicelib.core.text import fold
from chalicelib.engine.reading import fetch_of
from chalicelib.engine.tables import IdentityRow

SORT_KEY = "-"


# Names that are unique within a workspace are a ``Lookup`` of their listing instead.
class ClaimRow(IdentityRow):
    """A platform-wide claim. ``target`` is the id that the name leads to."""

    target = UnicodeAttribute()
    workspace_id = UnicodeAttribute(null=True)

    @classmethod
    def find_claim(cls, kind: str, *, name: str) -> "ClaimRow | None":
        return cls.find(*claim_key(kind, name=name))

    @classmethod
    def workspace_of(cls, kind: str, *, name: str) -> str | None:
        """Return the workspace of a claimed name, if any."""
        claim = cls.find_claim(kind, name=name)
        return claim.workspace_id if claim else None

    @classmethod
    def find_claimed(cls, kind: str, names: Iterable[str]) -> set[str]:
        """Return the names that are claimed, in one request."""
        keys = {f"CLAIM#{kind}#{name}": name for name in names}
        return {keys[row.pk] for row in fetch_of(cls, ((pk, SORT_KEY) for pk in keys))}


def claim(kind: str, *, name: str, target: str, workspace_id: str | None = None) -> ClaimRow:
    """Return the row that claims a name platform-wide."""
    return ClaimRow(*claim_key(kind, name=name), target=target, workspace_id=workspace_id)


def claim_key(kind: str, *, name: str) -> tuple[str, str]:
    """Return the partition key and the sort key of a claim."""
    return f"CLAIM#{kind}#{name}", SORT_KEY


def name_hash(text: str, *, group: str = "") -> str:
    """Return the hash under which a name is claimed. Names that compare equal share one hash."""
    # Folding can make a name too long for a key: U+FDFA becomes 18 letters.
    return exact_hash(fold(text), group=group)


def exact_hash(key: str, *, group: str = "") -> str:
    """Return the hash of a key that must not be folded, such as the key of an e-mail address."""
    return hashlib.sha256(f"{group}\0{key}".encode()).hexdigest()
