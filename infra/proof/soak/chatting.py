"""Visitors who talk to a bot, of whom some hang up during an answer."""

import json
import random
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any

from infra.local.stack import HOST
from infra.proof.soak.acknowledged import Acknowledged, Chat
from infra.proof.soak.client import NO_ANSWER, SECONDS, Tally
from infra.proof.soak.world import World

PATH = "/api/agents/public/chat-stream"
LEAVES = 0.15
"""Share of the answers that a visitor does not read to the end."""
CONTINUES = 0.5
"""Share of the messages that continue a dialog."""
ATTEMPTS = 4


class Visitor:
    """A visitor with at most one dialog, who sends a failed message again with its key."""

    def __init__(
        self, name: str, port: int, world: World, tally: Tally, acknowledged: Acknowledged
    ) -> None:
        self._name, self._port, self._world = name, port, world
        self._tally, self._acknowledged = tally, acknowledged
        self._session: str | None = None
        self._number = 0

    def chat(self, dice: random.Random) -> None:
        """Send a message, and read its answer to the end or to a random piece."""
        self._number += 1
        session = self._session if dice.random() < CONTINUES else None
        body = {
            "agentId": self._world.agent_id,
            "message": f"Question {self._number} of {self._name}",
            "sessionId": session,
        }
        pieces = dice.randint(0, 5) if dice.random() < LEAVES else None
        chat = Chat()
        self._acknowledged.chats.append(chat)
        for _ in range(ATTEMPTS):
            if self._attempt(chat, body, f"{self._name}-{self._number}", pieces):
                return
            pieces = None

    def _attempt(self, chat: Chat, body: dict[str, Any], key: str, pieces: int | None) -> bool:
        """Send a message once, and return whether the answer came to its end."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        with closing(HTTPConnection(HOST, self._port, timeout=SECONDS)) as connection:
            try:
                connection.request("POST", PATH, json.dumps(body), headers)
                answer = connection.getresponse()
                chat.request_ids.append(answer.headers["X-Request-Id"])
                if answer.status != 200:  # noqa: PLR2004  OK
                    data = json.loads(answer.read())["data"]
                    self._tally.answered(answer.status, data["code"])
                    if data["code"] == "not_found":
                        self._session = None
                    return str(data["code"]) == "session_busy"
                return self._read(chat, answer, pieces)
            except (OSError, HTTPException) as error:
                self._tally.answered(NO_ANSWER, f"no answer ({type(error).__name__})")
                return False

    def _read(self, chat: Chat, answer: HTTPResponse, pieces: int | None) -> bool:
        for seen, event in enumerate(_events(answer)):
            if pieces is not None and seen >= pieces:
                self._tally.count("left")
                return False
            if event["type"] == "start":
                self._session = event["sessionId"]
            if event["type"] in {"done", "error"}:
                self._tally.answered(200, "")
                chat.ended = event["type"] == "done"
                if chat.ended:
                    usage = event["usage"]
                    chat.tokens = usage["inputTokens"], usage["outputTokens"]
                return True
        self._tally.answered(NO_ANSWER, "an answer without its end")
        return False


def _events(answer: HTTPResponse) -> Iterator[dict[str, Any]]:
    while line := answer.readline():
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))
