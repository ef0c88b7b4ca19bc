"""``python -m infra seed``: fill a workspace with made-up records, the same for the same seed."""

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from ulid import ULID

from chalicelib.core import clock
from chalicelib.core.errors import UnavailableError
from chalicelib.core.unit import AuditEvent
from chalicelib.rules import ordering, slugs
from chalicelib.store.categories import CATEGORIES, CategoryRow
from chalicelib.store.listing import Listing
from chalicelib.store.products import PRODUCTS
from chalicelib.store.reading import Key, fetch
from chalicelib.store.tables import Record
from chalicelib.store.unit import UnitOfWork, run_unit

BATCH = 10
"""Records in one transaction, with their claims and counters; DynamoDB takes a hundred items."""
WRITERS = 2
PATIENCE = 20
"""How often a batch is begun again: a development database that is busy answers late, for a while.

What was written in spite of that is found, and left alone.
"""
FIRST_MADE_AT = datetime(2026, 1, 1, tzinfo=UTC)
"""When the first record was made, by its id; the next follow a second apart."""
STATUSES = ("active", "active", "active", "inactive")
THINGS = "чайник стол лампа кружка полка ёлка зеркало ковёр kettle table lamp mug shelf mirror"
KINDS = "красный синий малый большой тихий старый red blue small large quiet old"
CATEGORY_COUNT = 40
SMALL_CATEGORY = CATEGORY_COUNT - 1
SMALL_SHARE = 0.002
"""The last category is small: 200 of 100,000 products; the others share the rest."""
WORDS = (THINGS + " " + KINDS).split()


def category_id(number: int) -> str:
    """Return the id of a made-up category of products."""
    return f"seeded-category-{number:02}"


def _category(workspace_id: str, number: int) -> CategoryRow:
    name = f"{KINDS.split()[number % 12]} {THINGS.split()[number % 13]}".capitalize()
    return CategoryRow(
        CATEGORIES.partition(workspace_id),
        category_id(number),
        created_at=FIRST_MADE_AT,
        name=name,
        slug=f"{slugs.slugify(name, 'category')}-{number:02}",
        kind="product",
        sort_order=number * ordering.STEP,
    )


def _product(number: int, dice: random.Random) -> dict[str, Any]:
    name = f"{dice.choice(KINDS.split())} {dice.choice(THINGS.split())} {dice.randrange(10**4)}"
    return {
        "name": name.capitalize(),
        "price": dice.randrange(1, 5 * 10**4) * 100,
        "description": " ".join(dice.choices(WORDS, k=120)),
        "sku": f"S-{number:07}" if number % 10 == 0 else None,
        "stock": dice.choice([None, dice.randrange(1000)]),
        "category_id": category_id(
            SMALL_CATEGORY if dice.random() < SMALL_SHARE else dice.randrange(SMALL_CATEGORY)
        ),
        "status": dice.choice(STATUSES),
        "sort_order": number * ordering.STEP,
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
    if noun == "products":
        _write_categories(workspace_id)
    made = records(workspace_id, noun, count, seed)
    last = FIRST_MADE_AT + timedelta(seconds=count)
    with clock.using(lambda: last), ThreadPoolExecutor(WRITERS) as pool:
        while waves := [batch for _ in range(WRITERS) if (batch := list(islice(made, BATCH)))]:
            yield from pool.map(lambda batch: _write(workspace_id, batch), waves)


def _write_categories(workspace_id: str) -> None:
    """Write the categories that products are made in, unless they are there."""
    _write(workspace_id, [_category(workspace_id, number) for number in range(CATEGORY_COUNT)])


def _write(workspace_id: str, batch: Sequence[Record]) -> int:
    """Write those records that are not there; a write whose answer is lost is sent again."""

    def stage(unit: UnitOfWork) -> None:
        there = {row.sk for row in fetch(Key(type(row), row.pk, row.sk) for row in batch)}
        for record in batch:
            if record.id not in there:
                unit.create(record)

    for last in (*[False] * PATIENCE, True):
        try:
            run_unit(workspace_id, AuditEvent("seed", "operator"), stage)
            break
        except UnavailableError:
            if last:
                raise
    return len(batch)
