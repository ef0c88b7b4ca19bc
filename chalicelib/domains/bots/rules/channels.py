"""The channels that a visitor talks to a bot through."""

from typing import Literal, get_args

Channel = Literal["widget", "api", "page", "test"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
TEST: Channel = "test"
"""The channel of the bot's own people: it makes no lead and is outside the totals."""
