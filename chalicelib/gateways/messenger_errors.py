"""What goes wrong when a message is sent by a messenger."""


class MessengerError(Exception):
    """A request failed. A later one may succeed, and this one may have been carried out."""

    retry_after: float | None = None  # seconds, if known


class BusyError(MessengerError):
    """The bot sends too much, so nothing was sent. It may send again after ``retry_after``."""

    def __init__(self, service: str, retry_after: float) -> None:
        super().__init__(f"{service} has reached its rate limit; try again in {retry_after} s")
        self.retry_after: float = retry_after


class ChatGoneError(MessengerError):
    """The chat does not exist, or its user has blocked the bot. Remove the links to the chat."""
