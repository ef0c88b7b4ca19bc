"""The tool that finds businesses whose owners have listed them, for an assistant of a visitor."""

from typing import Annotated

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core.errors import ValidationError
from chalicelib.core.operations import PUBLIC, Declaration
from chalicelib.core.wire.schema import Wire, optional
from chalicelib.domains.assistants.flows import visits
from chalicelib.domains.identity.store import directory
from chalicelib.domains.identity.store.directory import Found, Words

MAX_SERVICES = 8  # of a business whose names a search returns

Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=100)]


class BusinessSearch(Wire):
    """What is known of a business."""

    name: Text | None = optional("Words of its name.")
    town: Text | None = optional("Town or street, as in its address.")
    trade: Text | None = optional("What it does, such as haircut, in its customers' language.")


class FoundBusiness(Wire):
    """A business that visitors can book at."""

    business: str = Field(description="Its id, for the argument business of the other tools.")
    name: str = Field(description="Name.")
    address: str | None = Field(description="Address, or null.")
    services: list[str] = Field(description="Names of some services: the business's own words.")
    booking_url: str = Field(description="Page on which visitors book.")

    @classmethod
    def from_found(cls, found: Found) -> "FoundBusiness":
        workspace = found.workspace
        return cls(
            business=workspace.slug,
            name=workspace.name,
            address=workspace.address,
            services=found.services[:MAX_SERVICES],
            booking_url=visits.url_of(workspace),
        )


class FoundBusinesses(Wire):
    """Businesses that fit."""

    businesses: list[FoundBusiness] = Field(description="Businesses, or none.")
    more: bool = Field(description="Whether there may be others. Search with more words then.")


@Declaration(
    title="Find a business",
    audience=PUBLIC,
    platform=True,
    limit=visits.CALLS,
    registry=visits.DIRECTORY_TOOLS,
)
def find_business(ctx: Context, args: BusinessSearch) -> FoundBusinesses:
    """Find businesses by name, town and trade, with ids for the other tools.

    Each word must begin a word of the business. Only businesses whose owners have agreed are found.
    """
    search = Words.of_search(name=args.name or "", town=args.town or "", trade=args.trade or "")
    if not search.beginnings():
        message = "expected a word in one of name, town and trade"
        raise ValidationError.of("trade", message=message)
    found, more = directory.find(search)
    return FoundBusinesses(businesses=[FoundBusiness.from_found(each) for each in found], more=more)
