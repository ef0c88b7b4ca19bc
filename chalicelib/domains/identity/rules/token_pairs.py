"""Rotation of a connection's tokens, and detection of replayed refresh tokens (RFC 9700, 4.14.2).

A refresh replaces the presented refresh token by its successor. Clients with several processes send
one refresh token several times. A token that was replaced less than two minutes ago is therefore
answered with a new access token and the same successor, so that a connection has one chain of
refresh tokens. A token that was replaced earlier is a replay: two parties have it.

The row of a connection keeps the hashes of live and of recently replaced tokens only. It recognises
older ones by a secret that all refresh tokens of the connection share, their family. So a replay is
detected however old the token is, and a guessed token cannot end a connection.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

ACCESS_SECONDS = 3_600
REFRESH_SECONDS = 60 * 86_400
# Seconds after its replacement for which a refresh token is answered with its successor.
REUSE_SECONDS = 120
MAX_ROTATIONS = 10  # refresh tokens of a connection that are replaced within two minutes
# Pairs that a row keeps. Access tokens of further replaced pairs end early, the oldest first.
MAX_KEPT = 20
_REPLACED_LONG_AGO = 1


class TokenPair(NamedTuple):
    """An access token and a refresh token, as hashes. Times are Unix seconds."""

    access: str
    # A further access token for a refresh token that was presented again has an empty ``refresh``,
    # which counts as replaced long ago.
    refresh: str
    issued_at: int
    replaced_at: int = 0  # 0 until the refresh token is used
    scope_mask: int = 0  # a bit for each scope of the connection, in its order; 0 means all scopes

    def access_is_live(self, now: int) -> bool:
        return now < self.issued_at + ACCESS_SECONDS

    def refresh_is_live(self, now: int) -> bool:
        return not self.replaced_at and now < self.issued_at + REFRESH_SECONDS

    def is_reusable(self, now: int) -> bool:
        return bool(self.replaced_at) and now - self.replaced_at < REUSE_SECONDS

    def is_needed(self, now: int) -> bool:
        return self.refresh_is_live(now) or self.is_reusable(now)


class RejectedError(Exception):
    """A refresh token is not accepted. If ``is_replay``, its connection must end."""

    def __init__(self, *, is_replay: bool = False) -> None:
        super().__init__()
        self.is_replay = is_replay


def find_access(pairs: Iterable[TokenPair], access: str, now: int) -> TokenPair | None:
    """Return the pair of a valid access token, or None."""
    return next((p for p in pairs if p.access == access and p.access_is_live(now)), None)


def rotate(
    pairs: Sequence[TokenPair], refresh: str, new: TokenPair, *, is_family: bool
) -> list[TokenPair]:
    """Return the pairs after a refresh token was exchanged for a new pair.

    ``new`` has the successor of the refresh token, and its time is the current one. ``is_family``
    is whether the refresh token shares the secret of the connection's tokens. Raises RejectedError
    if the token is unknown, expired or a replay, its successor was replaced, too, or too many were
    replaced within two minutes.
    """
    now, new_pairs = new.issued_at, list(pairs)
    place = next((n for n, pair in enumerate(new_pairs) if pair.refresh == refresh), None)
    if place is None or not new_pairs[place].is_needed(now):
        # A token of the family that is not kept any more was replaced or has expired.
        has_expired = place is not None and not new_pairs[place].replaced_at
        raise RejectedError(is_replay=is_family and not has_expired)
    if new_pairs[place].replaced_at:
        if not any(p.refresh == new.refresh and p.refresh_is_live(now) for p in new_pairs):
            raise RejectedError
        new = new._replace(refresh="", replaced_at=_REPLACED_LONG_AGO)
    else:
        if sum(pair.is_reusable(now) for pair in new_pairs) >= MAX_ROTATIONS:
            raise RejectedError
        new_pairs[place] = new_pairs[place]._replace(replaced_at=now)
    return _trim([*new_pairs, new], now)


def _trim(pairs: Sequence[TokenPair], now: int) -> list[TokenPair]:
    live_pairs = [pair for pair in pairs if pair.is_needed(now) or pair.access_is_live(now)]
    surplus = [pair for pair in live_pairs if not pair.is_needed(now)][
        : max(0, len(live_pairs) - MAX_KEPT)
    ]
    return [pair for pair in live_pairs if pair not in surplus]
