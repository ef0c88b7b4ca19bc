"""Generated records are reproduced by their seed, and continued after a stop."""

from itertools import islice

import pytest

from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.catalog.store import categories
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.domains.clients.store.clients import CLIENTS
from chalicelib.domains.leads.store import crm_metrics
from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.domains.services.store.resources import RESOURCES
from chalicelib.engine import metrics
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.query import Query
from infra.local.seed import BATCH, FIRST_MADE_AT, records, seed

pytestmark = pytest.mark.usefixtures("database")


def test_equal_seeds_make_equal_records() -> None:
    def values(count: int, number: int) -> list[dict[str, object]]:
        seeded_records = records("w", noun="products", count=count, seed=number)
        return [record.attribute_values for record in seeded_records]

    assert values(5, 1) == values(9, 1)[:5]
    assert values(5, 1) != values(5, 2)


def test_leads_have_their_forms_clients_and_statistics() -> None:
    assert sum(seed("w", noun="leads", count=45)) == 45
    assert sum(seed("w", noun="leads", count=45)) == 45
    assert counters.read("w", noun="LEAD")["total"] == 45
    assert counters.read("w", noun="CLIENT")["total"] == 23
    lead = next(records("w", noun="leads", count=45, seed=1))
    assert LEADS.find_by("w", lookup="phone", value=lead.phone) == [
        lead.id for lead in LEADS.entries("w", client_id=lead.client_id)
    ]
    assert CLIENTS.find("w", record_id=lead.client_id)
    day = FIRST_MADE_AT.date()
    counts = metrics.read("w", subject=crm_metrics.subject(), first=day, last=day)[day]
    assert counts.totals["created"] == 45


def test_bookings_have_their_resources_and_clients() -> None:
    assert sum(seed("w", noun="bookings", count=25)) == 25
    assert counters.read("w", noun="BOOKING")["total"] == 25
    assert counters.read("w", noun="CLIENT")["total"] == 7
    booking = next(records("w", noun="bookings", count=25, seed=1))
    assert isinstance(booking, BookingRow)
    assert len(BOOKINGS.entries("w", client_id=str(booking.client_id))) == 4
    assert RESOURCES.find("w", record_id=booking.resource_id)


@pytest.mark.slow
def test_a_stopped_run_continues_where_it_was() -> None:
    assert sum(islice(seed("w", noun="products", count=500), 2)) == 2 * BATCH
    begun = counters.read("w", noun="PRODUCT")["total"]
    assert 2 * BATCH <= begun < 500
    assert sum(seed("w", noun="products", count=500)) == 500
    assert counters.read("w", noun="PRODUCT")["total"] == 500
    category_ids = {category.id for category in categories.read_all("w")}
    assert len(category_ids) == 40
    assert {
        product.category_id for product in records("w", noun="products", count=500, seed=1)
    } <= category_ids
    assert PRODUCTS.page("w", Query(1, 20, "price")).total == 500
    assert sum(seed("w", noun="products", count=500)) == 500
    assert counters.read("w", noun="PRODUCT")["total"] == 500
