"""Wire models of those who wait."""

from collections.abc import Collection
from datetime import datetime
from typing import Literal, Self

from pydantic import Field

from chalicelib.core.wire.schema import Id, Timestamp, Wire
from chalicelib.domains.waiting.store import waiting_lines
from chalicelib.domains.waiting.store.waiting_lines import WaitingLineRow, WaitingRow

Told = Literal["sent", "waiting", "withheld", "none"]


class WaitingEntry(Wire):
    """One who waits for a free time of a service on a day."""

    id: Id = Field(description="Id.")
    day: str = Field(description="Local date, YYYY-MM-DD.")
    service_id: Id = Field(description="Service id.")
    resource_id: Id | None = Field(description="Only this resource; null: any.")
    position: int = Field(description="Place in the line of the day and the service, from 1.")
    client_id: Id | None = Field(description="Client id, or null.")
    name: str | None = Field(description="Name.")
    email: str | None = Field(description="E-mail address, or null.")
    phone: str | None = Field(description="Phone number, or null.")
    source: str = Field(description="public, console or api.")
    offered_until: Timestamp | None = Field(
        description="Until when a free time is offered, or null. It is not held."
    )
    told: Told | None = Field(
        description="The last message: sent, waiting, withheld, or none if no channel leads to the "
        "client; null: not sent yet."
    )
    created_at: Timestamp = Field(description="When the waiting began.")

    @classmethod
    def from_line(cls, line: WaitingLineRow, row: WaitingRow) -> Self:
        """Return one who waits in a line."""
        ids = [each.id for each in line.line.waiting]
        offered_until = line.offered_until if line.offered_to == row.sk else None
        return cls.from_record(row, ids.index(row.sk) + 1, offered_until)

    @classmethod
    def from_record(
        cls, row: WaitingRow, position: int, offered_until: datetime | None = None
    ) -> Self:
        return cls(
            id=row.sk,
            day=row.day.isoformat(),
            service_id=row.service_id,
            resource_id=row.resource_id,
            position=position,
            client_id=row.client_id,
            name=row.name,
            email=row.email,
            phone=row.phone,
            source=row.source,
            offered_until=offered_until,
            told=row.told["state"] if row.told else None,
            created_at=row.created_at,
        )


def of_client(
    workspace_id: str, contacts: Collection[str], client_ids: Collection[str]
) -> list[WaitingEntry]:
    """Return where some clients, or somebody with one of their contacts, wait."""
    found = waiting_lines.naming(workspace_id, contacts, client_ids)
    lines = {row.place: WaitingLineRow.of(workspace_id, row.place) for row in found}
    return [
        WaitingEntry.from_line(line, row)
        for row in found
        if (line := lines[row.place]) is not None and line.has(row.sk)
    ]
