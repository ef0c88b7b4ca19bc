"""Store the settings of a workspace's public booking page, and of its tools for assistants."""

from typing import Self

from pynamodb.attributes import (
    BooleanAttribute,
    ListAttribute,
    UnicodeAttribute,
    VersionAttribute,
)

from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.tables import ContentRow

SORT_KEY = "-"


class BookingPageRow(ContentRow):
    """Settings of a workspace's booking page. A workspace without a row has no page."""

    version = VersionAttribute()
    is_on = BooleanAttribute(default=False)
    is_indexed = BooleanAttribute(default=False)
    phone = UnicodeAttribute(null=True)  # shown to visitors as the owner typed it
    # Ids of deleted services may remain.
    service_ids: ListAttribute[str] = ListAttribute(default=list)

    @classmethod
    def read(cls, workspace_id: str, rows: Rows | None = None) -> Self:
        at = key(workspace_id)
        row: Self | None = (rows or Rows()).find(cls, at)
        return row or cls(at.pk, at.sk)


class AssistantsRow(ContentRow):
    """What the assistants of visitors may do on a workspace's booking page.

    A row of its own, because a release that does not know these attributes would drop them from the
    row of the page.
    """

    version = VersionAttribute()
    is_on = BooleanAttribute(default=False)  # Assistants may call the page's tools.
    # Any assistant finds the business at the endpoint for all. Only while ``is_on``.
    is_listed = BooleanAttribute(default=False)
    link_secret = UnicodeAttribute(null=True)  # signs the links that they prepare
    order_form_id = UnicodeAttribute(null=True)  # gets their orders
    knowledge_bot_id = UnicodeAttribute(null=True)  # whose knowledge they search

    @classmethod
    def read(cls, workspace_id: str, rows: Rows | None = None) -> Self:
        at = assistants_key(workspace_id)
        row: Self | None = (rows or Rows()).find(cls, at)
        return row or cls(at.pk, at.sk)


def key(workspace_id: str) -> Key:
    """Return the key of a workspace's page, to read it with other rows."""
    return Key(BookingPageRow, f"W#{workspace_id}#BOOKING_PAGE", SORT_KEY)


def assistants_key(workspace_id: str) -> Key:
    """Return the key of the assistants' row, to read it with other rows."""
    return Key(AssistantsRow, f"W#{workspace_id}#ASSISTANTS", SORT_KEY)
