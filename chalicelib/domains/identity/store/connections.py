"""Connections of accounts to AI clients, each in one workspace (OAuth)."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.exceptions import UpdateError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError, UnavailableError
from chalicelib.domains.identity.rules import token_pairs
from chalicelib.domains.identity.rules.token_pairs import TokenPair
from chalicelib.engine.reading import fetch_of
from chalicelib.engine.tables import IdentityRow, JsonAttribute
from chalicelib.lib import tokens

CODE_LIFE = timedelta(seconds=60)
REFRESH_LIFE = timedelta(seconds=token_pairs.REFRESH_SECONDS)
# Time between consent and the end of a connection, however often its tokens are refreshed.
LIFE = timedelta(days=180)
ENDED_LIFE = timedelta(days=30)  # for which a connection that has ended is listed
# Time between the end of a connection's life and its removal. The clock decides, not the TTL.
TTL_MARGIN = timedelta(days=1)
# Minimum time between two writes of a connection's last use, as for API keys.
LAST_USE_PRECISION = timedelta(minutes=10)
MAX_LIVE = 50  # in one workspace, and of one account
SORT_KEY = "connection"
ConnectionState = Literal["pending", "live", "expired", "ended"]


# A token contains the id of its connection, whose row has the hashes of its code and tokens, so
# authentication is one consistent read. The row is smaller than 4 KB, which is one read unit.
# Ending a connection ends all its tokens immediately.
class ConnectionRow(IdentityRow):
    """A connection. ``plan``, ``role`` and ``scopes`` apply to its calls, as in a key's row."""

    version = NumberAttribute(default=1)  # Changes of tokens require the one that was read.
    workspace_id = UnicodeAttribute()
    account_id = UnicodeAttribute()
    role = UnicodeAttribute()
    plan = UnicodeAttribute()
    scopes: JsonAttribute = JsonAttribute()
    client_name = UnicodeAttribute()
    client_host = UnicodeAttribute(default="")
    client_hash = UnicodeAttribute()
    redirect_hash = UnicodeAttribute(null=True)  # until the exchange of the code
    challenge = UnicodeAttribute(null=True)  # until the exchange of the code
    code_hash = UnicodeAttribute()  # kept after the exchange, to recognise a second use
    family_hash = UnicodeAttribute(null=True)  # of the secret that all refresh tokens share
    pairs: JsonAttribute = JsonAttribute(null=True)  # from the exchange on
    created_at = UTCDateTimeAttribute()
    last_used_at = UTCDateTimeAttribute(null=True)
    ended_at = UTCDateTimeAttribute(null=True)

    @property
    def id(self) -> str:
        return self.pk.partition("#")[2]

    @property
    def ends_at(self) -> datetime:
        return self.created_at + LIFE

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None or clock.now() >= self.ends_at

    @property
    def token_pairs(self) -> list[TokenPair]:
        return [TokenPair(*pair) for pair in self.pairs or ()]

    @property
    def state(self) -> ConnectionState:
        """State of the connection. It is pending until its code is exchanged."""
        if self.ended_at is not None:
            return "ended"
        if self.pairs is None:
            return "pending" if clock.now() < self.created_at + CODE_LIFE else "expired"
        now = seconds(clock.now())
        is_live = not self.is_over and any(p.refresh_is_live(now) for p in self.token_pairs)
        return "live" if is_live else "expired"

    @property
    def live(self) -> bool:
        """Whether the connection works, or will work after the exchange of its code."""
        return self.state in {"pending", "live"}

    def is_of(self, client_id: str) -> bool:
        return bool(self.client_hash == tokens.short_digest(client_id))

    def is_family(self, refresh_token: str) -> bool:
        return bool(self.family_hash == tokens.short_digest(tokens.family(refresh_token)))

    def mask_of(self, scopes: Iterable[str]) -> int:
        """Return the mask of some of the connection's scopes, or 0 for all scopes."""
        scope_set = set(scopes)
        mask = sum(1 << n for n, scope in enumerate(self.scopes) if scope in scope_set)
        return 0 if mask == (1 << len(self.scopes)) - 1 else mask

    def scopes_of(self, pair: TokenPair) -> list[str]:
        mask = pair.scope_mask
        return [scope for n, scope in enumerate(self.scopes) if not mask or mask >> n & 1]


class ConnectionLookupRow(IdentityRow):
    """Reference to a connection, under its workspace or its account."""


class Authenticated(NamedTuple):
    connection: ConnectionRow
    scopes: list[str]


def seconds(moment: datetime) -> int:
    """Return a moment as Unix seconds."""
    return int(moment.timestamp())


def row(connection_id: str, **attributes: Any) -> ConnectionRow:  # noqa: ANN401  the row's attributes
    """Return the row of a new connection, whose code is not exchanged yet. The caller stages it."""
    # A code that is never exchanged leaves no row for long.
    expires = attributes["created_at"] + CODE_LIFE + TTL_MARGIN
    return ConnectionRow(_partition(connection_id), SORT_KEY, expires=expires, **attributes)


def lookups(connection: ConnectionRow) -> list[ConnectionLookupRow]:
    """Return the look-up rows of a connection, kept until it would no longer be listed."""
    places = (
        _workspace_partition(connection.workspace_id),
        _account_partition(connection.account_id),
    )
    expires = connection.expires + ENDED_LIFE
    return [ConnectionLookupRow(pk, connection.id, expires=expires) for pk in places]


def lock_name(account_id: str) -> str:
    """Return the name of the platform's lock row for changes of an account's connections."""
    return f"connections:{account_id}"


def _partition(connection_id: str) -> str:
    return f"CONNECTION#{connection_id}"


def _workspace_partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#CONNECTION"


def _account_partition(account_id: str) -> str:
    return f"ACCOUNT#{account_id}#CONNECTIONS"


def find(connection_id: str) -> ConnectionRow | None:
    """Return a connection by its id, whatever its state, or None."""
    return ConnectionRow.find(_partition(connection_id), SORT_KEY)


def find_by_token(token: str, *prefixes: str) -> ConnectionRow | None:
    """Return the connection whose id a token contains. The caller must compare the token's hash."""
    # A malformed token costs no read.
    ids = (tokens.owner_id(token, prefix=prefix) for prefix in prefixes)
    connection_id = next(filter(None, ids), None)
    return None if connection_id is None else find(connection_id)


def require(connection_id: str, workspace_id: str | None = None) -> ConnectionRow:
    """Return a connection in any state, or raise NotFoundError, also for another workspace's."""
    connection = find(connection_id)
    if connection is None or workspace_id not in {None, connection.workspace_id}:
        raise NotFoundError(
            "No connected app has this id. List the connected apps to find valid ids.", key="app"
        )
    return connection


def read_all(workspace_id: str) -> list[ConnectionRow]:
    """Return all connections of a workspace, ended ones included, in the order of creation."""
    return _read_partition(_workspace_partition(workspace_id))


def live(workspace_id: str, account_id: str | None = None) -> list[ConnectionRow]:
    """Return the live connections of a workspace, optionally of one account only."""
    return [
        connection
        for connection in read_all(workspace_id)
        if connection.live and (account_id is None or connection.account_id == account_id)
    ]


def live_of_account(account_id: str) -> list[ConnectionRow]:
    """Return the live connections of an account in all workspaces."""
    return [
        connection
        for connection in _read_partition(_account_partition(account_id))
        if connection.live
    ]


def scopes_of_client(account_id: str, *, client_id: str) -> set[str]:
    """Return the scopes that an account's live connections to a client have."""
    client_connections = (
        connection for connection in live_of_account(account_id) if connection.is_of(client_id)
    )
    return {scope for connection in client_connections for scope in connection.scopes}


def read_by_id(workspace_id: str, connection_ids: Iterable[str]) -> dict[str, ConnectionRow]:
    """Return the workspace's connections with these ids, including ended connections, by id."""
    rows = fetch_of(
        ConnectionRow, ((_partition(connection_id), SORT_KEY) for connection_id in connection_ids)
    )
    return {row.id: row for row in rows if row.workspace_id == workspace_id}


def _read_partition(partition: str) -> list[ConnectionRow]:
    places = ConnectionLookupRow.partition(partition)
    rows = fetch_of(ConnectionRow, ((_partition(place.sk), SORT_KEY) for place in places))
    return sorted(rows, key=lambda row: row.id)


def authenticate(token: str) -> Authenticated | None:
    """Return the connection of a live access token, in one consistent read, or None."""
    connection = find_by_token(token, tokens.ACCESS_PREFIX)
    # Ending a connection ends its tokens at the next call, without a list of revoked ones.
    if connection is None or connection.is_over:
        return None
    now = seconds(clock.now())
    # The row has only hashes, so a copy of the database gives no access.
    pair = token_pairs.find_access(connection.token_pairs, tokens.short_digest(token), now)
    return pair and Authenticated(connection, connection.scopes_of(pair))


def touch(connection: ConnectionRow) -> None:
    """Write the time of a connection's last use, unless that was done within ten minutes."""
    now = clock.now()
    if connection.last_used_at is None or now - connection.last_used_at >= LAST_USE_PRECISION:
        try:
            used = ConnectionRow.last_used_at.set(now)
            connection.update([used], condition=ConnectionRow.pk.exists())
        except (UpdateError, UnavailableError):
            return  # A failed write of the last use must not fail the request.


def unchanged(connection: ConnectionRow) -> Condition:
    """Return the condition that a connection's tokens and its end are as they were read."""
    return ConnectionRow.version == int(connection.version)


def exchange_actions(connection: ConnectionRow, pair: TokenPair, family: str) -> list[Action]:
    """Return the changes of a connection whose code is exchanged for its first tokens."""
    return [
        *token_actions(connection, [pair]),
        ConnectionRow.family_hash.set(tokens.short_digest(family)),
        ConnectionRow.challenge.remove(),
        ConnectionRow.redirect_hash.remove(),
    ]


def token_actions(connection: ConnectionRow, pairs: Sequence[TokenPair]) -> list[Action]:
    """Return the changes of a connection that gets new tokens. They extend its life."""
    # The row must exist as long as a refresh token works, but no longer than the consent.
    connection.expires = min(clock.now() + REFRESH_LIFE, connection.ends_at) + TTL_MARGIN
    return [
        ConnectionRow.pairs.set(pairs),
        ConnectionRow.version.add(1),
        ConnectionRow.expires.set(connection.expires),
    ]


def widen_actions(connection: ConnectionRow, scopes: Iterable[str]) -> list[Action]:
    """Return the changes of a connection that gets further scopes, as do all its live tokens."""
    # The masks of tokens count from the first scope, so new ones stand last.
    widened = [*connection.scopes, *scopes]
    added = (1 << len(widened)) - (1 << len(connection.scopes))
    pairs = [
        pair._replace(scope_mask=pair.scope_mask and pair.scope_mask | added)
        for pair in connection.token_pairs
    ]
    return [
        ConnectionRow.scopes.set(widened),
        ConnectionRow.pairs.set(pairs),
        ConnectionRow.version.add(1),
    ]


def lookup_expiry(connection: ConnectionRow) -> list[Action]:
    """Return the change of a look-up row that keeps it as long as its connection is listed."""
    return [ConnectionLookupRow.expires.set(connection.expires + ENDED_LIFE)]


def end_actions(now: datetime) -> list[Action]:
    """Return the changes of a connection that ends."""
    return [
        ConnectionRow.ended_at.set(now),
        ConnectionRow.version.add(1),
        ConnectionRow.expires.set(now + ENDED_LIFE),
    ]
