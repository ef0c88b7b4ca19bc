"""Rotation of a connection's tokens, and detection of replayed refresh tokens (RFC 9700, 4.14.2).

A refresh replaces the presented refresh token by a new one of the same lineage. Clients with
several processes send one refresh token several times. A token that was replaced less than two
minutes ago is therefore answered with a pair of a new lineage. A token that was replaced earlier is
a replay: somebody else has, or had, a copy of it.

Only the hashes of recently replaced tokens are kept. An older one is recognised by its lineage, a
secret that the tokens of one lineage share. So nobody can end a connection by guessing a token.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

ACCESS_SECONDS = 3_600
REFRESH_SECONDS = 60 * 86_400
REUSE_SECONDS = 120
"""Seconds after its replacement for which a refresh token is answered with a pair of its own."""
MAX_PAIRS = 10
"""Live refresh tokens of a connection, and refresh tokens that are replaced within two minutes."""
MAX_KEPT = 2 * MAX_PAIRS
"""Pairs that a connection's row keeps. Replaced access tokens beyond it end early, oldest first."""


class TokenPair(NamedTuple):
    """An access token and a refresh token, as hashes. Times are Unix seconds.

    ``lineage`` is empty in a replaced pair, and ``replaced_at`` is 0 in others. ``is_first`` is 1
    in the first pair of a lineage until it is replaced. ``scope_mask`` has a bit for each scope of
    the connection, in its order; 0 means all of them.
    """

    access: str
    refresh: str
    lineage: str
    issued_at: int
    replaced_at: int = 0
    is_first: int = 0
    scope_mask: int = 0

    def access_is_live(self, now: int) -> bool:
        """Whether the access token is valid."""
        return now < self.issued_at + ACCESS_SECONDS

    def refresh_is_live(self, now: int) -> bool:
        """Whether the refresh token is valid and was never used."""
        return not self.replaced_at and now < self.issued_at + REFRESH_SECONDS

    def is_reusable(self, now: int) -> bool:
        """Whether the refresh token was replaced so recently that it may be sent again."""
        return bool(self.replaced_at) and now - self.replaced_at < REUSE_SECONDS


class Rejection(Exception):  # noqa: N818  an outcome, which the caller translates
    """A refresh token is not accepted. ``is_replay`` requires to end the connection."""

    def __init__(self, *, is_replay: bool = False) -> None:
        super().__init__()
        self.is_replay = is_replay


def find_access(pairs: Iterable[TokenPair], access: str, now: int) -> TokenPair | None:
    """Return the pair of a valid access token, or None."""
    return next((p for p in pairs if p.access == access and p.access_is_live(now)), None)


def is_issued(pairs: Sequence[TokenPair], refresh: str, lineage: str) -> bool:
    """Whether a refresh token is known by its hash, or by its lineage."""
    return any(refresh == pair.refresh or lineage == pair.lineage for pair in pairs)


def accept(pairs: Sequence[TokenPair], refresh: str, lineage: str, now: int) -> bool:
    """Check a refresh token. Return whether its successor continues the lineage.

    If not, the successor starts a lineage of its own.

    Raises:
        Rejection: the token is unknown, expired or a replay, or the connection has too many pairs.
    """
    pair = next((each for each in pairs if each.refresh == refresh), None)
    if pair is not None and pair.refresh_is_live(now):
        if sum(each.is_reusable(now) for each in pairs) >= MAX_PAIRS:
            raise Rejection
        return True
    if pair is not None and pair.is_reusable(now):
        if _is_full(pairs, now) and not _evictable(pairs, now):
            raise Rejection
        return False
    raise Rejection(is_replay=any(p.lineage == lineage and p.refresh_is_live(now) for p in pairs))


def rotate(pairs: Sequence[TokenPair], refresh: str, new: TokenPair, now: int) -> list[TokenPair]:
    """Return the pairs after a refresh that ``accept`` allowed. Expired ones are left out."""
    kept = list(pairs)
    place, old = next((n, each) for n, each in enumerate(kept) if each.refresh == refresh)
    if not old.replaced_at:
        kept[place] = old._replace(replaced_at=now, lineage="", is_first=0)
    elif _is_full(kept, now):
        kept.remove(_evictable(kept, now)[0])
    return _trim([*kept, new], now)


def _is_full(pairs: Iterable[TokenPair], now: int) -> bool:
    return sum(each.refresh_is_live(now) for each in pairs) >= MAX_PAIRS


def _evictable(pairs: Iterable[TokenPair], now: int) -> list[TokenPair]:
    """Return the pairs that may be dropped for a new lineage, oldest first.

    They were issued at least two minutes ago and have never been refreshed: of several processes
    that refresh at once, most drop their answers. Their lineages contain no replaced token, so no
    replay goes undetected without them.
    """
    unused = (each for each in pairs if each.is_first and each.refresh_is_live(now))
    return [each for each in unused if now - each.issued_at >= REUSE_SECONDS]


def _trim(pairs: Iterable[TokenPair], now: int) -> list[TokenPair]:
    """Return the pairs that are still needed, at most ``MAX_KEPT``."""
    kept = [each for each in pairs if _is_needed(each, now) or each.access_is_live(now)]
    surplus = [each for each in kept if not _is_needed(each, now)][: max(0, len(kept) - MAX_KEPT)]
    return [each for each in kept if each not in surplus]


def _is_needed(pair: TokenPair, now: int) -> bool:
    return pair.refresh_is_live(now) or pair.is_reusable(now)
