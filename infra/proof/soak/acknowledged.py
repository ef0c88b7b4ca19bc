"""Responses that clients received, which the database must confirm."""

from dataclasses import dataclass, field


@dataclass
class Chat:
    """A message to a bot, sent once or again with the same idempotency key.

    ``request_ids`` has one id for each attempt. ``ended`` is whether the client received the end of
    the answer, with these ``tokens``: input and output.
    """

    request_ids: list[str] = field(default_factory=list)
    ended: bool = False
    tokens: tuple[int, int] | None = None


@dataclass
class Acknowledged:
    """The acknowledged writes of one client.

    ``products`` are prices by id; None means deleted. ``unsure`` are records whose last change was
    never decided. ``submissions`` are ids of leads by their text, ``bookings`` are whether each was
    cancelled, and ``contests`` the winners of each contested slot.
    """

    workspace_id: str
    products: dict[str, int | None] = field(default_factory=dict)
    submissions: dict[str, str] = field(default_factory=dict)
    bookings: dict[str, bool] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    undecided: int = 0
    contests: list[int] = field(default_factory=list)
    chats: list[Chat] = field(default_factory=list)
