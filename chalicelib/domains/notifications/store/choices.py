"""Store which messages members want, and in which language."""

from collections.abc import Iterable
from typing import Literal, cast, get_args

from pynamodb.attributes import UnicodeAttribute

from chalicelib.domains.identity.store.workspaces import CHOICES_LOCK, MembershipRow
from chalicelib.domains.notifications.rules.who_is_told import MEMBER_KINDS, ToMembers
from chalicelib.engine.tables import ContentRow, JsonAttribute
from chalicelib.lib.localized import Language, language_of_country

Channel = Literal["mail", "telegram"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
LOCK = CHOICES_LOCK


class ChoicesRow(ContentRow):
    """The choices of a member. Its sort key is the account's id."""

    # A true or false for ``<kind>.<channel>``. A missing kind goes by the choice for the kind that
    # it is like, or else by the default of the member's role. So does a kind that the service adds
    # later.
    chosen: JsonAttribute = JsonAttribute()
    language = UnicodeAttribute()


class Choices:
    """Messages that a member gets, by own choice or by default, and their language."""

    def __init__(
        self, member: MembershipRow, country: str, own_language: str | None, row: ChoicesRow | None
    ) -> None:
        # The default language is the language of the account, or else of the workspace's country.
        language_code = row.language if row else own_language or language_of_country(country)
        self.language = cast("Language", language_code)
        self._chosen: dict[str, bool] = dict(row.chosen) if row else {}
        self._role = member.role
        self._is_staff = member.resource_id is not None

    def may_get(self, kind: str) -> bool:
        told = MEMBER_KINDS[kind]
        if self._role == "staff":  # Only the own bookings and calendar: no money, no leads.
            return self._is_staff and "staff" in told.mailed
        return self._role == "owner" or not told.owner_only

    def wants(self, kind: str, channel: Channel) -> bool:
        if not self.may_get(kind):
            return False
        if (choice := self._chosen.get(f"{kind}.{channel}")) is not None:
            return choice
        told = MEMBER_KINDS[kind]
        if told.like and f"{told.like}.{channel}" in self._chosen:
            return self._chosen[f"{told.like}.{channel}"]
        return channel == "mail" and self._is_mailed(told)

    def _is_mailed(self, told: ToMembers) -> bool:
        is_staff = self._is_staff and "staff" in told.mailed
        return is_staff or self._role in told.mailed

    def channels(self, kind: str) -> list[Channel]:
        return [channel for channel in CHANNELS if self.wants(kind, channel)]

    def choose(self, kind: str, channel: Channel, *, is_on: bool) -> None:
        """Change one choice. It has no effect if the member's role does not get the messages."""
        # Kinds that have gone by the choice so far keep their channels.
        for name, told in MEMBER_KINDS.items():
            if told.like == kind:
                self._chosen[f"{name}.{channel}"] = self.wants(name, channel)
        self._chosen[f"{kind}.{channel}"] = is_on

    def row(self, workspace_id: str, *, account_id: str) -> ChoicesRow:
        choices = {
            # A kind that a later release has removed must not fill the row for ever.
            name: is_on
            for name, is_on in self._chosen.items()
            if _kind(name) in MEMBER_KINDS
        }
        return new_row(workspace_id, account_id=account_id, chosen=choices, language=self.language)


def new_row(
    workspace_id: str, *, account_id: str, chosen: dict[str, bool], language: str
) -> ChoicesRow:
    """Return the choices of a member, for the caller to stage."""
    return ChoicesRow(_place(workspace_id), account_id, chosen=chosen, language=language)


def find(workspace_id: str, *, account_id: str) -> ChoicesRow | None:
    """Return the choices that a member has made, or None."""
    return ChoicesRow.find(_place(workspace_id), account_id)


def read_all(workspace_id: str) -> dict[str, ChoicesRow]:
    """Return the choices by account. A job removes the choices of former members."""
    return {row.sk: row for row in ChoicesRow.partition(_place(workspace_id))}


def unwanted(members: Iterable[Choices]) -> set[str]:
    """Return the kinds of messages that no member wants."""
    everyone = list(members)
    return {kind for kind in MEMBER_KINDS if not any(member.channels(kind) for member in everyone)}


def _kind(name: str) -> str:
    return name.partition(".")[0]


def _place(workspace_id: str) -> str:
    return f"W#{workspace_id}#NOTIFY"
