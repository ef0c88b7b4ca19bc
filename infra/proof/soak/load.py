"""Clients in threads that send a mixed load at a steady modest rate."""

import random
import time
from collections.abc import Callable
from functools import partial
from threading import Event, Thread

from infra.proof.soak.acknowledged import Acknowledged
from infra.proof.soak.booking import Booker
from infra.proof.soak.chatting import Visitor
from infra.proof.soak.client import Answer, Client, Tally
from infra.proof.soak.dice import dice
from infra.proof.soak.world import World

CLIENTS = 50
RATE = 6.0
"""Pieces of work in a second, of all clients together. A piece takes one to nine requests."""
LEAVES = 0.05
"""Share of the writes whose client hangs up before the response, and then repeats the call."""
READS = (
    "/api/products/list?size=20",
    "/api/products/list?q=soak&sort=price",
    "/api/forms/collection-list?size=20",
    "/api/bookings/list?size=20",
    "/api/clients/list?size=20",
    "/api/crm/stats",
    "/api/agents/list",
    "/api/openapi.json",
    "/api/health",
)


class LoadClient:
    """A client that does random pieces of work until it is stopped."""

    def __init__(self, number: int, *, port: int, world: World, tally: Tally) -> None:
        self.acknowledged = Acknowledged(world.workspace_id)
        self._name = f"{world.name}-{number}"
        self._world, self._tally = world, tally
        self._dice = dice("client", number)
        self._visitor = Visitor(self._name, port, world, tally, self.acknowledged)
        clients = partial(Client, port, world.key, tally)
        self._booker = Booker(self._name, world, self.acknowledged, clients)
        self._client = self._booker.client
        self._number = 0
        self._work: dict[str, tuple[int, Callable[[random.Random], None]]] = {
            "rest: read": (26, self._read),
            "rest: create": (9, self._create),
            "rest: update": (10, self._update),
            "rest: delete": (4, self._delete),
            "tools: read": (10, self._read_by_tool),
            "tools: write": (9, self._write_by_tool),
            "form": (10, self._submit),
            "booking": (7, self._booker.book),
            "booking: contest": (2, self._booker.contest),
            "booking: cancel": (4, self._booker.cancel),
            "chat": (9, self._visitor.chat),
        }

    def run(self, stop: Event) -> None:
        """Work until stopped, with random pauses that keep to the rate."""
        names = list(self._work)
        weights = [self._work[name][0] for name in names]
        while not stop.wait(self._dice.expovariate(RATE / CLIENTS)):
            (name,) = self._dice.choices(names, weights)
            self._tally.face(name)
            self._work[name][1](self._dice)
        self._client.close()

    def _key(self) -> str:
        self._number += 1
        return f"{self._name}-{self._number}"

    def _own_product(self) -> str | None:
        live = [id_ for id_, price in self.acknowledged.products.items() if price is not None]
        return self._dice.choice(live) if live else None

    def _read(self, dice: random.Random) -> None:
        product = self._own_product()
        if product and dice.random() < 0.3:  # noqa: PLR2004  a third
            self._client.read(f"/api/products/{product}")
        else:
            self._client.read(dice.choice(READS))

    def _write(self, path: str, body: dict[str, object], key: str) -> Answer:
        leaves = self._dice.random() < LEAVES
        answer = self._client.settle("POST", path=path, body=body, key=key, leaves=leaves)
        self.acknowledged.undecided += not answer.decided
        return answer

    def _create(self, dice: random.Random) -> None:
        key, price = self._key(), dice.randint(100, 10_000)
        answer = self._write("/api/products/create", {"name": f"Soak {key}", "price": price}, key)
        if answer.ok:
            self.acknowledged.products[answer.data["product"]["id"]] = price

    def _update(self, dice: random.Random) -> None:
        if product := self._own_product():
            key, price = self._key(), dice.randint(100, 10_000)
            answer = self._write("/api/products/update", {"id": product, "price": price}, key)
            self._note(product, price, answer)

    def _delete(self, _: random.Random) -> None:
        if product := self._own_product():
            answer = self._write("/api/products/delete", {"id": product}, self._key())
            if answer.code == "not_found":  # The call before the client hung up has deleted it.
                answer = Answer(200, {})
            self._note(product, None, answer)

    def _note(self, product: str, price: int | None, answer: Answer) -> None:
        if answer.ok:
            self.acknowledged.products[product] = price
        else:
            self.acknowledged.unsure.add(product)

    def _read_by_tool(self, dice: random.Random) -> None:
        product = self._own_product()
        if product and dice.random() < 0.5:  # noqa: PLR2004  half
            self._client.tool("svc_get_product", {"id": product})
        elif dice.random() < 0.2:  # noqa: PLR2004  a fifth
            rpc_request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            self._client.once("POST", path="/api/mcp", body=rpc_request)
        else:
            self._client.tool("svc_list_products", {"size": 10})

    def _write_by_tool(self, dice: random.Random) -> None:
        key, price = self._key(), dice.randint(100, 10_000)
        product = self._own_product()
        arguments: dict[str, object] = {"price": price, "idempotencyKey": key}
        if product and dice.random() < 0.5:  # noqa: PLR2004  half
            answer = self._client.tool("svc_update_product", {"id": product, **arguments})
            self._note(product, price, answer)
            return
        answer = self._client.tool("svc_create_product", {"name": f"Soak {key}", **arguments})
        self.acknowledged.undecided += not answer.decided
        if answer.ok:
            self.acknowledged.products[answer.data["product"]["id"]] = price

    def _submit(self, dice: random.Random) -> None:
        key = self._key()
        person = dice.randint(1, 300)
        values = {"name": f"Client {person}", "email": f"client-{person}@example.com"}
        body: dict[str, object] = {**values, "message": key, "idempotencyKey": key}
        answer = self._write(f"/api/public/forms/{self._world.form_id}/submit", body, key)
        if answer.ok:
            self.acknowledged.submissions[key] = answer.data["id"]


def run(port: int, worlds: list[World], tally: Tally, seconds: float) -> list[Acknowledged]:
    """Run the clients for some seconds, and return the responses that they received."""
    clients = [
        LoadClient(n, port=port, world=worlds[n % len(worlds)], tally=tally) for n in range(CLIENTS)
    ]
    stop, failures = Event(), list[BaseException]()

    def work(client: LoadClient) -> None:
        try:
            client.run(stop)
        except BaseException as error:  # noqa: BLE001  raised below, in the calling thread
            failures.append(error)
            stop.set()

    threads = [Thread(target=work, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    try:
        stop.wait(max(0.0, end - time.monotonic()))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return [client.acknowledged for client in clients]
