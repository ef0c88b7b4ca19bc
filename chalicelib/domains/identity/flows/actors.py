"""Actors of changes, with the names that people read."""

from collections.abc import Mapping
from typing import Literal, Self, get_args

from pydantic import Field

from chalicelib.core.wire.schema import Wire
from chalicelib.domains.identity.store.accounts import AccountRow

ActorKind = Literal["account", "operator", "visitor", "job"]
KINDS: tuple[ActorKind, ...] = get_args(ActorKind)


class Actor(Wire):
    """Actor of a change."""

    kind: ActorKind = Field(description="account, operator, visitor or job.")
    id: str | None = Field(description="Account id, or null.")
    name: str | None = Field(description="The account's name, or null.")
    email: str | None = Field(description="The account's e-mail address, or null.")

    @classmethod
    def from_reference(cls, actor: str, people: Mapping[str, AccountRow]) -> Self:
        kind, person = actor_kind(actor), people.get(actor)
        return cls(
            kind=kind,
            id=actor if kind == "account" else None,
            name=person.name if person else None,
            email=person.email if person else None,
        )


def actor_kind(actor: str) -> ActorKind:
    """Return the kind of an actor. An account is stored as its id without a prefix."""
    name = actor.partition(":")[0]
    return next((kind for kind in KINDS if kind == name), "account")
