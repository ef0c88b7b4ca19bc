"""The wire model of a sentence with a code, such as a warning."""

from typing import ClassVar

from pydantic import ConfigDict, Field

from chalicelib.core.wire.schema import Wire


class MessageDetail(Wire):
    """A sentence with its code. Further fields are its facts, which depend on the code."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    code: str = Field(description="Stable code.")
    message: str = Field(description="The sentence.")
