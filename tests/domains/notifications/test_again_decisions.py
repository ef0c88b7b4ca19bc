"""Who is asked to book again, and when, for any bookings and consents."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.domains.bookings.store.bookings import BLOCKING, STATUSES
from chalicelib.domains.notifications.rules.again_decisions import (
    END_HOUR,
    FIRST_HOUR,
    Consent,
    Visit,
    consent_to_use,
    due_at,
    in_hours,
)

NOW = datetime(2027, 3, 31, 12, tzinfo=UTC)
ZONES = ["Europe/Berlin", "Europe/Moscow", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Apia"]
ADDRESSES = ["ada@example.com", "eve@example.com", None]


@st.composite
def visits(draw: st.DrawFn, name: str | None = None) -> Visit:
    start = NOW + timedelta(days=draw(st.integers(-40, 20)))
    status = draw(st.sampled_from(STATUSES))
    return Visit(
        id=name or draw(st.sampled_from("bcdef")),
        status=status,
        blocks=status in BLOCKING,
        starts_at=start,
        ends_at=start + timedelta(hours=1),
        created_at=start - timedelta(days=draw(st.integers(-3, 30))),
        is_proved=draw(st.booleans()),
        address=draw(st.sampled_from(ADDRESSES)),
    )


consents = st.builds(
    Consent,
    st.sampled_from([address for address in ADDRESSES if address]),
    st.sampled_from("abcdefg"),
)


@given(
    visits("a"),
    st.lists(visits(), unique_by=lambda visit: visit.id),
    st.lists(consents, max_size=4),
    st.sampled_from(ADDRESSES),
)
def test_who_is_asked_has_agreed_with_a_proof_for_the_address_and_has_nothing_later(
    visit: Visit, others: list[Visit], given_consents: list[Consent], client_address: str | None
) -> None:
    bookings = [visit, *others]
    chosen = consent_to_use(visit, bookings, given_consents, client_address=client_address, now=NOW)
    proved = {each.id for each in bookings if each.is_proved or each.status == "completed"}
    may_use = [
        consent
        for consent in given_consents
        if consent.address == visit.address and consent.booking_id in proved
    ]
    is_over = visit.status in {"completed", "confirmed"} and visit.ends_at <= NOW
    has_later = any(
        other.created_at > visit.ends_at
        or (other.status in BLOCKING and other.starts_at > visit.starts_at)
        for other in others
    )
    is_own = client_address is None or client_address == visit.address
    assert (chosen is not None) == (
        bool(may_use) and is_over and not has_later and is_own and visit.address is not None
    )
    if chosen is not None:
        assert chosen in may_use


@given(
    st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001  made aware below
    st.integers(7, 365),
    st.sampled_from(ZONES),
)
@example(datetime(2027, 2, 28, 1, 30), 28, "Europe/Berlin")  # noqa: DTZ001  a time that is skipped
def test_a_client_is_asked_in_the_daytime_of_the_business_on_the_day_or_the_next(
    ended: datetime, days: int, timezone: str
) -> None:
    ended_at, zone = ended.replace(tzinfo=UTC), ZoneInfo(timezone)
    local = due_at(ended_at, days, timezone).astimezone(zone)
    assert FIRST_HOUR <= local.hour < END_HOUR
    wanted = ended_at.astimezone(zone)
    late = (local.date() - wanted.date()).days - days
    assert late == (1 if wanted.hour >= END_HOUR else 0)
    if FIRST_HOUR <= wanted.hour < END_HOUR:
        assert local.time() == wanted.time()


@given(
    st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001  made aware below
    st.sampled_from(ZONES),
)
def test_a_moment_in_the_daytime_does_not_wait(moment: datetime, timezone: str) -> None:
    first = in_hours(moment.replace(tzinfo=UTC), timezone)
    assert in_hours(first, timezone) == first
    assert timedelta() <= first - moment.replace(tzinfo=UTC) < timedelta(hours=17)
