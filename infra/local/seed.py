"""Fill a workspace with sample records that a seed reproduces (``python -m infra seed``)."""

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
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.catalog.store.categories import CATEGORIES, CategoryRow
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.domains.clients.store.clients import CLIENTS, ClientRow
from chalicelib.domains.leads.store import crm_metrics
from chalicelib.domains.leads.store.forms import FORMS, FormRow
from chalicelib.domains.leads.store.leads import LEADS, LeadRow
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.engine.listing import ordering
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.reading import Key, fetch
from chalicelib.engine.tables import Record
from chalicelib.engine.unit import UnitOfWork, run_unit, split_batches
from chalicelib.lib import slugs

BATCH = 10
"""Records per transaction, with their claims and counters. DynamoDB takes a hundred items."""
WRITERS = 2
PATIENCE = 20
"""Attempts per batch, because a busy development database may respond late for a while.

If a lost response hides a successful write, the next attempt finds the records and keeps them.
"""
FIRST_MADE_AT = datetime(2026, 1, 1, tzinfo=UTC)
"""Creation time of the first record, by its id. The others follow one second apart."""
STATUSES = ("active", "active", "active", "inactive")
STATUSES_OF_LEADS = ("new", "in_progress", "completed", "completed", "rejected", "archived")
STATUSES_OF_BOOKINGS = ("confirmed", "completed", "completed", "cancelled", "no_show")
LEADS_A_CLIENT = 2
BOOKINGS_A_CLIENT = 4
SERVICE_COUNT = 3
RESOURCE_COUNT = 10
ZONE = "Europe/Moscow"
SITE = "seeded-site"
FORM_COUNT = 5
FORMS_OF_SITE = 2
FIRST_PHONE = 79160000000
THINGS = "чайник стол лампа кружка полка ёлка зеркало ковёр kettle table lamp mug shelf mirror"
KINDS = "красный синий малый большой тихий старый red blue small large quiet old"
CATEGORY_COUNT = 40
SMALL_CATEGORY = CATEGORY_COUNT - 1
SMALL_SHARE = 0.002
"""Share of the last category: 200 of 100,000 products. The other categories share the rest."""
WORDS = (THINGS + " " + KINDS).split()


def category_id(number: int) -> str:
    """Return the id of a sample category of products."""
    return f"seeded-category-{number:02}"


def _category(workspace_id: str, number: int) -> CategoryRow:
    name = f"{KINDS.split()[number % 12]} {THINGS.split()[number % 13]}".capitalize()
    return CategoryRow(
        CATEGORIES.partition(workspace_id),
        category_id(number),
        created_at=FIRST_MADE_AT,
        name=name,
        slug=f"{slugs.slugify(name, fallback='category')}-{number:02}",
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


def form_id(number: int) -> str:
    """Return the id of a sample form, of which the first two belong to a site."""
    return f"seeded-form-{number}"


def _site_of(form: int) -> str | None:
    return SITE if form < FORMS_OF_SITE else None


def _form(workspace_id: str, number: int) -> FormRow:
    return FormRow(
        FORMS.partition(workspace_id),
        form_id(number),
        created_at=FIRST_MADE_AT,
        title=f"Form {number}",
        fields=[{"name": "message", "label": "Message", "type": "textarea", "required": False}],
        project_id=_site_of(number),
    )


def _person(number: int) -> dict[str, Any]:
    return {
        "name": f"Client {number:06}",
        "email": f"client{number}@example.com",
        "phone": f"+{FIRST_PHONE + number}",
    }


def _client_id(number: int) -> str:
    made_in = int(FIRST_MADE_AT.timestamp() * 1000).to_bytes(6)
    return str(ULID.from_bytes(made_in + number.to_bytes(10)))


def _client(workspace_id: str, number: int, *, leads: int = 0, bookings: int = 0) -> ClientRow:
    """Return the client of the given number of consecutive leads or bookings."""
    newest = (number + 1) * (leads + bookings) - 1
    return ClientRow(
        CLIENTS.partition(workspace_id),
        _client_id(number),
        created_at=FIRST_MADE_AT,
        leads_count=leads,
        bookings_count=bookings,
        last_activity=FIRST_MADE_AT + newest * _spacing("leads"),
        **_person(number),
    )


def _lead(number: int, dice: random.Random) -> dict[str, Any]:
    form, client = dice.randrange(FORM_COUNT), number // LEADS_A_CLIENT
    source = dice.choice(("direct", "newsletter", "search.example"))
    return {
        "status": dice.choice(STATUSES_OF_LEADS),
        "form_id": form_id(form),
        "project_id": _site_of(form),
        "client_id": _client_id(client),
        "data": {"message": " ".join(dice.choices(WORDS, k=30)) + f" No. {number:05}"},
        "source": {"name": source, "page": None, "referrer": None, "campaign": None},
        "source_name": source,
        "day": (FIRST_MADE_AT + number * _spacing("leads")).date().isoformat(),
        **_person(client),
    }


def service_id(number: int) -> str:
    """Return the id of a deleted sample service, to which bookings still refer."""
    return f"seeded-service-{number}"


def resource_id(number: int) -> str:
    """Return the id of a sample resource."""
    return f"seeded-resource-{number:02}"


def _resource(workspace_id: str, number: int) -> ResourceRow:
    return ResourceRow(
        RESOURCES.partition(workspace_id),
        resource_id(number),
        created_at=FIRST_MADE_AT,
        name=f"Stylist {number}",
        type="master",
        timezone=ZONE,
        capacity=1,
        status="active",
        sort_order=number * ordering.STEP,
    )


def _booking(number: int, dice: random.Random) -> dict[str, Any]:
    """Return a past or future booking for lists, which occupies no time in a calendar."""
    service, resource = dice.randrange(SERVICE_COUNT), dice.randrange(RESOURCE_COUNT)
    created_at = FIRST_MADE_AT + number * _spacing("bookings")
    start = created_at.replace(minute=0) + timedelta(hours=dice.randrange(1, 14 * 24))
    who = _person(number // BOOKINGS_A_CLIENT)
    return {
        "status": dice.choice(STATUSES_OF_BOOKINGS),
        "service_id": service_id(service),
        "service_name": f"Service {service}",
        "resource_id": resource_id(resource),
        "resource_name": f"Stylist {resource}",
        "starts_at": start,
        "ends_at": start + timedelta(hours=1),
        "duration_min": 60,
        "timezone": ZONE,
        "price": 150_000,
        "client_id": _client_id(number // BOOKINGS_A_CLIENT),
        "client_name": who["name"],
        "client_email": who["email"],
        "client_phone": who["phone"],
        "phone_digits": "8" + who["phone"][2:],
        "source": "api",
    }


def _spacing(noun: str) -> timedelta:
    """Return the time between two records, with which 50,000 records cover almost a year."""
    return timedelta(minutes=10) if noun in {"leads", "bookings"} else timedelta(seconds=1)


NOUNS: dict[str, tuple[Listing[Any], Callable[[int, random.Random], dict[str, Any]]]] = {
    "products": (PRODUCTS, _product),
    "leads": (LEADS, _lead),
    "bookings": (BOOKINGS, _booking),
}


def records(workspace_id: str, *, noun: str, count: int, seed: int) -> Iterator[Record]:
    """Yield sample records, of which a longer run begins with the records of a shorter run."""
    listing, make = NOUNS[noun]
    dice = random.Random(f"{noun} {seed}")  # noqa: S311  repeatable by intent
    for number in range(count):
        moment = FIRST_MADE_AT + number * _spacing(noun)
        # A ULID begins with 48 bits of milliseconds, so ids sort by the time of creation.
        made_in = int(moment.timestamp() * 1000).to_bytes(6)
        record_id = str(ULID.from_bytes(made_in + dice.randbytes(10)))
        values = make(number, dice)
        yield listing.row(listing.partition(workspace_id), record_id, created_at=moment, **values)


def seed(workspace_id: str, *, noun: str, count: int, seed: int = 1) -> Iterator[int]:
    """Write the records that do not exist yet. Yields the number of records after each step.

    Records that they refer to are written first. Each step is one transaction with its counters, so
    that a run that was stopped can be started again and continues.
    """
    seeded_records = records(workspace_id, noun=noun, count=count, seed=seed)
    last = last_moment(noun, count)
    with clock.using(lambda: last), ThreadPoolExecutor(WRITERS) as pool:
        referred = split_batches(parents(workspace_id, noun=noun, count=count), BATCH)
        list(pool.map(lambda batch: _write(workspace_id, batch), referred))
        while waves := [
            batch for _ in range(WRITERS) if (batch := list(islice(seeded_records, BATCH)))
        ]:
            yield from pool.map(lambda batch: _write(workspace_id, batch), waves)


def last_moment(noun: str, count: int) -> datetime:
    """Return the creation time of the last of ``count`` records."""
    return FIRST_MADE_AT + count * _spacing(noun)


def parents(workspace_id: str, *, noun: str, count: int) -> Iterator[Record]:
    """Yield the categories, forms and clients that other records refer to."""
    if noun == "products":
        yield from (_category(workspace_id, number) for number in range(CATEGORY_COUNT))
    if noun == "leads":
        yield from (_form(workspace_id, number) for number in range(FORM_COUNT))
        clients = range(-(-count // LEADS_A_CLIENT))
        yield from (_client(workspace_id, client, leads=LEADS_A_CLIENT) for client in clients)
    if noun == "bookings":
        yield from (_resource(workspace_id, number) for number in range(RESOURCE_COUNT))
        clients = range(-(-count // BOOKINGS_A_CLIENT))
        yield from (_client(workspace_id, client, bookings=BOOKINGS_A_CLIENT) for client in clients)


def _write(workspace_id: str, batch: Sequence[Record]) -> int:
    """Write the records that do not exist yet, and repeat a write whose response is lost."""

    def stage(unit: UnitOfWork) -> None:
        there = {row.sk for row in fetch(Key(type(row), row.pk, row.sk) for row in batch)}
        missing = [record for record in batch if record.id not in there]
        for record in missing:
            unit.create(record)
        leads = [record for record in missing if isinstance(record, LeadRow)]
        crm_metrics.count_created(unit, [(lead, False) for lead in leads])

    for last in (*[False] * PATIENCE, True):
        try:
            run_unit(workspace_id, AuditEvent("seed", "operator"), stage)
            break
        except UnavailableError:
            if last:
                raise
    return len(batch)
