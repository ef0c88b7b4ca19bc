"""Channels by which visitors reach bots."""

from typing import Literal, get_args

Channel = Literal["widget", "api", "page", "test"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
# For trials by the workspace's members. It creates no leads, and totals exclude it.
TEST_CHANNEL: Channel = "test"
