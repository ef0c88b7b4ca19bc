"""Request model of a visitor's message to a bot, and its sender."""

from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from chalicelib.core.principals import VisitorPrincipal
from chalicelib.core.wire.schema import RECEIVED, Id, Wire, optional
from chalicelib.domains.bots.rules.channels import Channel
from chalicelib.lib.contact_fields import Email, PersonName, PhoneText

MAX_MESSAGE = 10_000  # Unicode code points
ACTIONS = "actions"  # the feature of clients that show cards with actions to confirm
SOURCES = "sources"  # the feature of clients that show the sources of an answer
# Names that the service does not know have no effect.
Features = Annotated[list[Annotated[str, StringConstraints(max_length=40)]], Field(max_length=20)]
# The text beside a box, as the visitor read it. It may be in any language.
Consent = Annotated[str, StringConstraints(min_length=1, max_length=300)]
_Token = Annotated[str, StringConstraints(min_length=1)]


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError(
            "blank", "expected a message, received only white space", {RECEIVED: True}
        )
    return text


class ChatContact(Wire):
    """Contact details that the visitor entered in the widget's form."""

    name: PersonName | None = optional("Name.")
    email: Email | None = optional("E-mail address.")
    phone: PhoneText | None = optional("In any format.")
    consent: Consent | None = optional("Text to which the visitor has agreed by a tick.")


class ChatRequest(Wire):
    """A message to a bot."""

    agent_id: Id = Field(description="Bot id.")
    message: Annotated[
        str,
        StringConstraints(min_length=1, max_length=MAX_MESSAGE),
        AfterValidator(_not_blank),
    ] = Field(description="The visitor's message.")
    session_id: _Token | None = optional("Session of a dialog to continue; default: a new dialog.")
    api_key: _Token | None = optional("Bot key; required by a private bot.")
    channel: Channel | None = optional("Where the dialog takes place; default: api.")
    page_url: str | None = optional("URL of the page; its query is dropped.")
    contact: ChatContact | None = optional("Contact details; the dialog then becomes a lead.")
    visit_id: Id | None = optional("Widget visit that the dialog belongs to, for the funnel.")
    features: Features | None = optional("actions, sources: what the client can show besides text.")

    def shows(self, feature: str) -> bool:
        return feature in (self.features or ())


class Caller(NamedTuple):
    """Sender of a message."""

    visitor: str  # a hash
    request_id: str
    idempotency_key: str | None = None
    in_console: bool = False  # a member of the bot's workspace
    network: str = ""  # the hash of an IPv6 network, or empty

    @property
    def share_subjects(self) -> tuple[str, ...]:
        return VisitorPrincipal(visitor=self.visitor, network=self.network).share_subjects
