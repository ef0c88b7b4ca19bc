"""``python -m infra seed``: fill a workspace with made-up records, the same for the same seed."""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from ulid import ULID

from chalicelib.core import clock
from chalicelib.store.listing import Listing
from chalicelib.store.products import PRODUCTS, ProductRow, sku_claim
from chalicelib.store.reading import Key, fetch
from chalicelib.store.tables import Record
from chalicelib.store.unit import UnitOfWork

BATCH = 80
"""Records in one transaction, with their claims and counters; DynamoDB takes a hundred items."""
WRITERS = 4
FIRST_MADE_AT = datetime(2026, 1, 1, tzinfo=UTC)
"""When the first record was made, by its id; the next follow a second apart."""
STATUSES = ("active", "active", "active", "inactive")
THINGS = "чайник стол лампа кружка полка ёлка зеркало ковёр kettle table lamp mug shelf mirror"
KINDS = "красный синий малый большой тихий старый red blue small large quiet old"
CATEGORIES = 40
WORDS = (THINGS + " " + KINDS).split()


def _product(number: int, dice: random.Random) -> dict[str, Any]:
    name = f"{dice.choice(KINDS.split())} {dice.choice(THINGS.split())} {dice.randrange(10**4)}"
    return {
        "name": name.capitalize(),
        "price": dice.randrange(1, 5 * 10**4) * 100,
        "description": " ".join(dice.choices(WORDS, k=120)),
        "sku": f"S-{number:07}" if number % 10 == 0 else None,
        "stock": dice.choice([None, dice.randrange(1000)]),
        "category_id": f"seeded-category-{dice.randrange(CATEGORIES):02}",
        "status": dice.choice(STATUSES),
        "sort_order": number * 1024,
    }


NOUNS: dict[str, tuple[Listing[Any], Callable[[int, random.Random], dict[str, Any]]]] = {
    "products": (PRODUCTS, _product),
}


def records(workspace_id: str, noun: str, count: int, seed: int) -> Iterator[Record]:
    """Yield made-up records; the first ones of a longer run are those of a shorter."""
    listing, make = NOUNS[noun]
    dice = random.Random(f"{noun} {seed}")  # noqa: S311  repeatable by intent
    for number in range(count):
        moment = FIRST_MADE_AT + timedelta(seconds=number)
        made_in = int(moment.timestamp() * 1000).to_bytes(6)
        record_id = str(ULID.from_bytes(made_in + dice.randbytes(10)))
        values = make(number, dice)
        yield listing.row(listing.partition(workspace_id), record_id, created_at=moment, **values)


def seed(workspace_id: str, noun: str, count: int, seed: int = 1) -> Iterator[int]:
    """Write the records that are not there yet; yield how many each step has dealt with.

    Every step is one transaction with its counters, so that a run that was stopped can be begun
    again and goes on where it was.
    """
    made = records(workspace_id, noun, count, seed)
    last = FIRST_MADE_AT + timedelta(seconds=count)
    with clock.using(lambda: last), ThreadPoolExecutor(WRITERS) as pool:
        while waves := [batch for _ in range(WRITERS) if (batch := list(islice(made, BATCH)))]:
            yield from pool.map(lambda batch: _write(workspace_id, batch), waves)


def _write(workspace_id: str, batch: list[ProductRow]) -> int:
    there = {row.sk for row in fetch(Key(type(row), row.pk, row.sk) for row in batch)}
    unit = UnitOfWork(workspace_id, "seed")
    for record in batch:
        if record.id not in there:
            unit.create(record)
            if record.sku:
                unit.create(sku_claim(workspace_id, record.sku, record.id))
    unit.commit()
    return len(batch)
