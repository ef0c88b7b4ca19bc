"""Clients who book, some for the same slot at the same time, and who cancel."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from chalicelib.core import clock
from infra.proof.soak.acknowledged import Acknowledged
from infra.proof.soak.client import Answer, Client
from infra.proof.soak.world import World

Clients = Callable[[], Client]
"""Makes a client of the workspace."""
RIVALS = 4
"""Clients who want one slot in a contest."""
DAYS = 150
"""Days ahead among which the clients choose."""


class Booker:
    """Books free slots of a service, for ``client`` in all calls but contests."""

    def __init__(
        self, name: str, world: World, acknowledged: Acknowledged, clients: Clients
    ) -> None:
        self._name, self._world, self._acknowledged = name, world, acknowledged
        self.client, self._rivals = clients(), [clients() for _ in range(RIVALS)]
        self._number = 0

    def book(self, dice: random.Random) -> None:
        """Book a free slot, as a visitor or as a member of the workspace."""
        if slot := self._find(dice):
            self._take(self.client, slot, who="alone", is_public=dice.random() < 0.5)  # noqa: PLR2004  half

    def contest(self, dice: random.Random) -> None:
        """Book one slot of one member of staff with several clients concurrently."""
        slot = self._find(dice)
        if slot is None:
            return
        resource = dice.choice(self._world.resource_ids)
        with ThreadPoolExecutor(RIVALS) as pool:
            ends = [
                pool.submit(self._take, rival, slot, who=f"rival {number}", resource=resource)
                for number, rival in enumerate(self._rivals)
            ]
        answers = [end.result() for end in ends]
        for rival in self._rivals:
            rival.close()  # Kept connections would look like handles that the service leaks.
        if all(answer.decided for answer in answers):
            self._acknowledged.contests.append(sum(answer.ok for answer in answers))

    def cancel(self, dice: random.Random) -> None:
        """Cancel one of the bookings, so that its slot is free again."""
        current = [id_ for id_, cancelled in self._acknowledged.bookings.items() if not cancelled]
        if not current:
            return
        id_ = dice.choice(current)
        self._number += 1
        body = {"id": id_, "status": "cancelled"}
        key = f"{self._name}-{self._number}-cancel"
        answer = self.client.settle(
            "POST",
            path="/api/bookings/set-status",
            body=body,
            key=key,
            leaves=dice.random() < 0.1,  # noqa: PLR2004  a tenth
        )
        self._acknowledged.bookings[id_] = answer.ok
        if not answer.decided:
            self._acknowledged.unsure.add(id_)

    def _find(self, dice: random.Random) -> str | None:
        self._number += 1
        day = clock.now().date() + timedelta(days=dice.randint(1, DAYS))
        path = f"/api/public/services/{self._world.service_id}/slots?from={day}&to={day}&limit=3"
        slots = self.client.read(path).data.get("slots", [])
        return str(dice.choice(slots)["startAt"]) if slots else None

    def _take(
        self,
        client: Client,
        slot: str,
        *,
        who: str,
        resource: str | None = None,
        is_public: bool = False,
    ) -> Answer:
        name = f"{self._name}-{self._number}-{who}"
        person = {"name": name, "email": f"{name.replace(' ', '-')}@example.com"}
        body = {
            "serviceId": self._world.service_id,
            "startAt": slot,
            "client": person,
            "notes": name,
            **({"resourceId": resource} if resource else {}),
        }
        path = "/api/public/bookings" if is_public else "/api/bookings/create"
        if is_public:
            body["idempotencyKey"] = name
        answer = client.settle("POST", path=path, body=body, key=name, leaves=False)
        if answer.ok:
            self._acknowledged.bookings[answer.data["booking"]["id"]] = False
        self._acknowledged.undecided += not answer.decided
        return answer
