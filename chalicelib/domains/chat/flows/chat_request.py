"""Wire model of a visitor's message."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from chalicelib.core.wire.schema import Id, Wire, optional
from chalicelib.domains.bots.rules.channels import Channel
from chalicelib.lib.contact_fields import Email, PersonName, PhoneText

MAX_MESSAGE = 10_000
"""Maximum length of a message in Unicode code points."""


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "expected some text, received white space alone")
    return text


class ChatContact(Wire):
    """Who a visitor says to be, in a form beside the chat."""

    name: PersonName | None = optional("Name.")
    email: Email | None = optional("E-mail address.")
    phone: PhoneText | None = optional("Any spelling.")


class ChatRequest(Wire):
    """A message to a bot."""

    agent_id: Id = Field(description="Bot id.")
    message: Annotated[
        str,
        StringConstraints(min_length=1, max_length=MAX_MESSAGE),
        AfterValidator(_not_blank),
    ] = Field(description="What the visitor says.")
    session_id: str | None = optional("Continues a dialog; without it a new one begins.")
    api_key: str | None = optional("Bot key, of a private bot.")
    channel: Channel | None = optional("Where it is led; api by default.")
    page_url: str | None = optional("The page; its query is dropped.")
    contact: ChatContact | None = optional("How to reach the visitor: makes the dialog a lead.")
    visit_id: Id | None = optional("The widget's visit, for its funnel.")
