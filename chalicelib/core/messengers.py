"""The messengers by which the service can write to people."""

from collections.abc import Mapping
from typing import Literal, get_args

Messenger = Literal["telegram", "max"]
MESSENGERS: tuple[Messenger, ...] = get_args(Messenger)
NAMES: Mapping[Messenger, str] = {
    "telegram": "Telegram",
    "max": "MAX",
}  # as their owners write them
