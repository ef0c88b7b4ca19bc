"""Input is parsed strictly, errors explain the fix, and ignored input causes warnings."""

import time as stopwatch
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field

from chalicelib.core.call_warnings import CallWarning, WarningCode
from chalicelib.core.errors import HOW_TO_CLEAR, OR_CLEAR, ValidationError
from chalicelib.core.wire.money import Kopecks
from chalicelib.core.wire.parsing import from_query, parse, unknown_fields
from chalicelib.core.wire.schema import (
    NULL_IS_A_VALUE,
    Id,
    Patch,
    Slug,
    Timestamp,
    Title,
    Wire,
    optional,
)
from chalicelib.core.wire.times import When


class Interval(Wire):
    """An interval of opening hours."""

    start_at: str = Field(description="Start.")
    end_at: str = Field(default="24:00", description="End.")


class Rule(Wire):
    """Opening hours of a day."""

    week_day: Literal["mon", "tue"] = Field(description="Day.")
    intervals: list[Interval] = Field(default=[], description="Hours.")


class Visitor(Wire):
    """A visitor."""

    full_name: Title = Field(description="Name.")
    phone: str | None = optional("Phone.")


class Order(Wire):
    """An order with every kind of field that a body can have."""

    REJECTED_FIELDS: ClassVar[dict[str, str]] = {"html": "save it with another call"}

    id: Id = Field(description="Id.")
    price: Kopecks = Field(default=0, description="Price.")
    quantity: Annotated[int, Field(ge=1, le=5)] = Field(default=1, description="Number.")
    is_gift: bool = Field(default=False, description="Gift.")
    client: Visitor | None = optional("Who.")
    rules: list[Rule] = Field(default=[], description="When.")
    tags: list[str] = Field(default=[], max_length=3, description="Tags.")
    extra: dict[str, Any] | None = optional("Anything.")


class OrderPatch(Patch):
    """Changes to an order."""

    id: Id = Field(description="Id.")
    note_text: str | None = optional("Note.")
    price: Kopecks = optional("Price.")


class Renamed(Patch):
    """Changes of string fields."""

    slug: Slug | None = optional("Slug.")
    name: Title = optional("Name.")


class OrderQuery(Wire):
    """Filters of a list of orders."""

    page: Annotated[int, Field(ge=1)] = Field(default=1, description="Page.")
    min_price: Kopecks | None = optional("Least price.")
    is_gift: bool | None = optional("Gifts.")
    status: Literal["new", "old"] | None = optional("Status.")
    search: str | None = optional("Text.")
    ids: list[str] | None = optional("Ids.")
    numbers: list[int] | None = optional("Numbers.")


class Moved(Wire):
    """A move. A null parent differs from an omitted one."""

    to: Annotated[Id | None, NULL_IS_A_VALUE] = optional("Where to; null is the root.")
    flag: Annotated[bool, NULL_IS_A_VALUE] = optional("Flips if omitted.")
    slug: Slug | None = optional("Slug.")


class Moment(Wire):
    """A moment."""

    created_at: Timestamp = Field(description="When.")


class Period(Wire):
    """A period that begins on a day or at a moment."""

    start: When = Field(description="When.")


def errors(model: type[Wire], raw: dict[str, Any]) -> dict[str, str]:
    """Return the messages, by field, with which input is refused."""
    with pytest.raises(ValidationError) as refusal:
        parse(model, raw)
    error = refusal.value
    for field in error.errors[:5]:
        assert f"{field.field}: {field.message}" in error.message
    return {field.field: field.message for field in error.errors}


def keys(model: type[Wire], raw: dict[str, Any]) -> dict[str, str]:
    """Return the keys, by field, of the errors with which input is refused."""
    with pytest.raises(ValidationError) as refusal:
        parse(model, raw)
    return {field.field: field.key for field in refusal.value.errors}


def warnings(raw: dict[str, Any]) -> list[CallWarning]:
    """Return the warnings about an input."""
    return unknown_fields(Order, raw)


class TestParse:
    def test_camel_case_names_are_read(self) -> None:
        raw = {"id": "x", "isGift": True, "client": {"fullName": " Ann "}}
        order = parse(Order, raw)
        assert order.is_gift is True
        assert order.client is not None
        assert order.client.full_name == "Ann"

    def test_python_names_are_not_read(self) -> None:
        assert parse(Order, {"id": "x", "is_gift": True}).is_gift is False
        assert keys(Rule, {"week_day": "mon"}) == {"weekDay": "required"}
        assert '"week_day"' in errors(Rule, {"week_day": "mon"})["weekDay"]

    @pytest.mark.parametrize("value", ["1", "1.0", 1.5, True, False, [1], {"n": 1}])
    def test_an_integer_must_be_a_json_integer(self, value: Any) -> None:
        assert set(errors(Order, {"id": "x", "price": value})) == {"price"}
        assert set(errors(Order, {"id": "x", "quantity": value})) == {"quantity"}

    def test_an_integral_number_is_an_integer_in_any_notation(self) -> None:
        order = parse(Order, {"id": "x", "price": 19990.0, "quantity": 5.0})
        assert (order.price, order.quantity) == (19990, 5)
        assert isinstance(order.price, int)
        assert parse(OrderQuery, {"numbers": [1.0, 2]}).numbers == [1, 2]
        assert parse(Order, {"id": "x", "extra": {"n": 1.0}}).extra == {"n": 1.0}

    def test_a_number_too_large_to_be_exact_is_not_an_integer(self) -> None:
        assert keys(Order, {"id": "x", "quantity": 1e300}) == {"quantity": "invalid_type"}

    @pytest.mark.parametrize("value", ["true", "false", "", 1, 0, 1.0])
    def test_a_boolean_must_be_a_json_boolean(self, value: Any) -> None:
        assert set(errors(Order, {"id": "x", "isGift": value})) == {"isGift"}

    @pytest.mark.parametrize("value", [1, 1.5, True, None, ["x"], {}])
    def test_text_must_be_a_json_string(self, value: Any) -> None:
        assert set(errors(Order, {"id": value})) == {"id"}

    @pytest.mark.parametrize("value", ["x", {"0": "x"}, 1])
    def test_an_array_must_be_a_json_array(self, value: Any) -> None:
        assert set(errors(Order, {"id": "x", "tags": value})) == {"tags"}

    @pytest.mark.parametrize(
        ("raw", "field", "received"),
        [
            ({"price": "100"}, "price", 'received string "100"'),
            ({"price": 1.5}, "price", "received number 1.5"),
            ({"price": True}, "price", "received boolean true"),
            ({"rules": [None]}, "rules.0", "received null"),
            ({"price": -1}, "price", "0, received number -1"),
            ({"quantity": 6}, "quantity", "5, received number 6"),
            ({"price": 10**11 + 1}, "price", "received number 100000000001"),
            ({"price": 10**4000}, "price", "(very large)"),
            ({"tags": {}}, "tags", "received an object"),
            ({"tags": list("abcd")}, "tags", "received an array with 4 item(s)"),
            ({"client": {"fullName": ""}}, "client.fullName", 'received string ""'),
            ({"client": {"fullName": "x" * 201}}, "client.fullName", "(201 characters)"),
            ({"rules": [{"weekDay": "mon"}, {"weekDay": "sun"}]}, "rules.1.weekDay", "'mon'"),
            (
                {"rules": [{"weekDay": "mon", "intervals": [{"startAt": 9}]}]},
                "rules.0.intervals.0.startAt",
                "received number 9",
            ),
        ],
    )
    def test_an_error_names_the_field_the_expected_and_the_received_value(
        self, raw: dict[str, Any], field: str, received: str
    ) -> None:
        messages = errors(Order, {"id": "x", **raw})
        assert list(messages) == [field]
        assert "expected" in messages[field] or "should" in messages[field]
        assert received in messages[field]

    def test_an_error_names_a_missing_field_in_camel_case(self) -> None:
        assert errors(Order, {"client": {}}) == {
            "id": "is required",
            "client.fullName": "is required",
        }

    def test_an_error_shows_neither_a_whole_long_text_nor_a_librarys_name(self) -> None:
        message = errors(Order, {"id": "secret-" * 1000})["id"]
        assert len(message) < 200
        assert "(7000 characters)" in message
        assert "pydantic" not in message

    def test_values_on_the_bounds_are_accepted(self) -> None:
        assert parse(Order, {"id": "x" * 64, "price": 10**11, "quantity": 5}).price == 10**11
        assert parse(Order, {"id": "x", "price": 0, "quantity": 1}).quantity == 1

    def test_fields_of_another_call_are_refused_even_as_null(self) -> None:
        for value in ("<p>", None):
            messages = errors(Order, {"id": "x", "html": value})
            assert messages == {"html": "save it with another call"}

    def test_an_omitted_field_differs_from_a_null_one(self) -> None:
        assert parse(OrderPatch, {"id": "x", "noteText": None}).provided("id") == {
            "note_text": None
        }
        assert parse(OrderPatch, {"id": "x", "price": 1}).provided("id") == {"price": 1}

    def test_null_means_omitted_where_a_field_cannot_be_null(self) -> None:
        visitor = {"fullName": "Ann", "phone": None}
        raw = {"id": "x", "price": None, "tags": None, "extra": None, "client": visitor}
        order = parse(Order, raw)
        assert order.provided() == {"id": "x", "client": order.client}
        assert (order.price, order.tags) == (0, [])
        assert order.client is not None
        assert order.client.provided() == {"full_name": "Ann"}
        nested = parse(Order, {"id": "x", "rules": [{"weekDay": "mon", "intervals": None}]})
        assert nested.rules[0].provided() == {"week_day": "mon"}

    def test_null_is_refused_in_a_required_field(self) -> None:
        assert keys(Order, {"id": None}) == {"id": "invalid_type"}
        assert errors(Order, {"id": None})["id"].endswith("received null")

    def test_null_clears_an_optional_field_of_a_patch_and_leaves_the_rest(self) -> None:
        patch = parse(OrderPatch, {"id": "x", "noteText": None, "price": None})
        assert patch.provided("id") == {"note_text": None}

    def test_null_counts_in_fields_that_declare_a_meaning_for_it(self) -> None:
        assert parse(Moved, {"to": None}).provided() == {"to": None}
        assert parse(Moved, {}).provided() == {}
        assert keys(Moved, {"flag": None}) == {"flag": "invalid_type"}
        assert errors(Moved, {"flag": None})["flag"].endswith("received null")

    def test_an_error_about_a_missing_field_lists_the_fields_that_were_sent(self) -> None:
        raw: dict[str, Any] = {"productId": "x", "prise": 1}
        assert keys(Order, raw) == {"id": "required"}
        assert errors(Order, raw)["id"].endswith('"productId"')
        raw = {"id": "x", "client": {"fulName": "A", "age": 4}}
        assert keys(Order, raw) == {"client.fullName": "required"}
        assert errors(Order, raw)["client.fullName"].endswith('"fulName", "age"')

    def test_a_pattern_error_is_described_in_words(self) -> None:
        message = errors(Moved, {"slug": "No Slug"})["slug"]
        assert "lower-case Latin letters" in message
        assert message.endswith('"No Slug"')

    @pytest.mark.parametrize("more", [{}, {"note_text": "x"}, {"nothing": 1}])
    def test_an_empty_update_names_the_fields_that_can_change(self, more: dict[str, Any]) -> None:
        with pytest.raises(ValidationError) as refusal:
            parse(OrderPatch, {"id": "x", **more})
        names = f"noteText, price{OR_CLEAR}"
        assert refusal.value.key == "no_changes"
        assert refusal.value.message.endswith(names)
        assert refusal.value.errors == ()

    def test_a_long_array_reports_only_a_few_errors(self) -> None:
        assert len(errors(Order, {"id": "x", "rules": [1] * 10_000})) <= 100


class TestKeys:
    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"client": {}}, {"client.fullName": "required"}),
            ({"id": ""}, {"id": "too_short"}),
            ({"id": "x" * 65}, {"id": "too_long"}),
            ({"price": 1.5}, {"price": "invalid_type"}),
            ({"price": -1}, {"price": "too_small"}),
            ({"quantity": "1"}, {"quantity": "invalid_type"}),
            ({"quantity": 0}, {"quantity": "too_small"}),
            ({"quantity": 6}, {"quantity": "too_large"}),
            ({"isGift": 1}, {"isGift": "invalid_type"}),
            ({"client": {"fullName": " "}}, {"client.fullName": "too_short"}),
            ({"client": {"fullName": "a\0"}}, {"client.fullName": "control_characters"}),
            ({"rules": [{"weekDay": "sun"}]}, {"rules.0.weekDay": "unknown_value"}),
            ({"rules": {}}, {"rules": "invalid_type"}),
            ({"tags": ["a"] * 4}, {"tags": "too_many_items"}),
        ],
    )
    def test_an_error_has_the_kind_of_its_fault(
        self, fields: dict[str, Any], expected: dict[str, str]
    ) -> None:
        assert keys(Order, {"id": "x", **fields}) == expected

    def test_a_rule_of_our_own_has_its_own_key(self) -> None:
        assert keys(Renamed, {"slug": "No Slug"}) == {"slug": "pattern"}
        assert keys(Moment, {"createdAt": "soon"}) == {"createdAt": "iso_8601"}
        assert keys(Period, {"start": "1600-01-01"}) == {"start": "year"}

    def test_a_message_that_says_what_was_received_is_not_given_it_again(self) -> None:
        message = errors(Period, {"start": "1600-01-01"})["start"]
        assert message.endswith("received 1600")
        assert errors(Renamed, {"slug": "No Slug"})["slug"].count('"No Slug"') == 1


class TestUnknownFields:
    def test_known_fields_give_no_warning(self) -> None:
        raw = {"id": "x", "client": {"fullName": "A"}, "rules": [{"weekDay": "mon"}]}
        assert warnings(raw) == []

    @pytest.mark.parametrize(
        ("typo", "suggestion"),
        [
            ("prise", "price"),
            ("Price", "price"),
            ("is_gift", "isGift"),
            ("isgift", "isGift"),
            ("quantitty", "quantity"),
        ],
    )
    def test_a_warning_suggests_the_nearest_known_name(self, typo: str, suggestion: str) -> None:
        (warning,) = warnings({"id": "x", typo: 1})
        facts = {"field": typo, "suggestion": suggestion}
        assert warning[1:] == (WarningCode.UNKNOWN_FIELD, facts)
        assert f'"{suggestion}"' in warning.message

    def test_a_warning_lists_the_known_names_if_none_is_similar(self) -> None:
        (warning,) = warnings({"id": "x", "zzz": 1})
        assert warning.facts == {"field": "zzz", "suggestion": None}
        assert "id, price, quantity, isGift, client, rules, tags, extra" in warning.message

    def test_unknown_fields_are_found_in_nested_objects_and_arrays(self) -> None:
        found = warnings(
            {
                "id": "x",
                "client": {"fullName": "A", "fone": "1"},
                "rules": [
                    {"weekDay": "mon"},
                    {"weekDay": "tue", "intervals": [{"startAt": "9", "endsAt": "10"}]},
                ],
            }
        )
        assert [warning.facts for warning in found] == [
            {"field": "client.fone", "suggestion": "phone"},
            {"field": "rules.1.intervals.0.endsAt", "suggestion": "endAt"},
        ]

    def test_free_form_objects_have_no_unknown_fields(self) -> None:
        assert warnings({"id": "x", "extra": {"anything": {"goes": 1}}}) == []

    def test_many_unknown_fields_are_summarised_quickly(self) -> None:
        raw = {"id": "x", **{f"field{number}": 1 for number in range(20_000)}}
        began = stopwatch.thread_time()
        found = warnings(raw)
        assert stopwatch.thread_time() - began < 5  # CPU seconds of this thread; usually 0.01.
        assert len(found) <= 100
        assert found[-1].code == WarningCode.MORE_UNKNOWN_FIELDS


class Filled(Wire):
    """An input from a client that fills in every field."""

    name: Title = Field(description="Name.")
    note: str | None = optional("A note, which may be empty.")
    slug: Slug | None = optional("Slug.")
    owner_id: Id | None = optional("Id.")
    status: Literal["new", "old"] = Field(default="new", description="Status.")
    min_price: Kopecks | None = optional("Least price.")
    ids: list[Id] | None = optional("Ids.")
    to: Annotated[Id | None, NULL_IS_A_VALUE] = optional("Where to; null is the root.")
    visitor: Visitor | None = optional("Who.")
    visits: list[Moved] = Field(default=[], description="Moves.")


class TestEmptyTexts:
    def test_an_empty_text_that_an_optional_field_refuses_is_an_omission(self) -> None:
        raw = {"name": "x", "slug": "", "ownerId": "", "status": ""}
        filled = parse(Filled, raw, drop_empty=True)
        assert filled.provided() == {"name": "x"}
        assert filled.status == "new"

    def test_an_empty_text_that_a_field_accepts_is_kept(self) -> None:
        assert parse(Filled, {"name": "x", "note": "", "slug": ""}, drop_empty=True).note == ""

    def test_an_empty_text_where_a_number_or_a_list_is_expected_is_refused(self) -> None:
        with pytest.raises(ValidationError) as refusal:
            parse(Filled, {"name": "x", "minPrice": "", "ids": ""}, drop_empty=True)
        assert [error.field for error in refusal.value.errors] == ["minPrice", "ids"]

    def test_an_empty_text_in_a_required_field_is_refused(self) -> None:
        with pytest.raises(ValidationError) as refusal:
            parse(Filled, {"name": "", "slug": ""}, drop_empty=True)
        assert [error[::2] for error in refusal.value.errors] == [("name", "too_short")]

    def test_an_empty_text_is_refused_where_null_has_a_meaning_of_its_own(self) -> None:
        with pytest.raises(ValidationError) as refusal:
            parse(Filled, {"name": "x", "to": ""}, drop_empty=True)
        assert [error[::2] for error in refusal.value.errors] == [("to", "too_short")]

    def test_an_empty_text_inside_nested_objects_is_an_omission(self) -> None:
        raw = {
            "name": "x",
            "visits": [{"to": "a", "slug": ""}, {"to": "b"}],
            "visitor": {"fullName": "", "phone": ""},
        }
        with pytest.raises(ValidationError) as refusal:
            parse(Filled, raw, drop_empty=True)
        assert [error.field for error in refusal.value.errors] == ["visitor.fullName"]
        filled = parse(Filled, raw | {"visitor": {"fullName": "Ann"}}, drop_empty=True)
        assert [visit.slug for visit in filled.visits] == [None, None]

    def test_an_empty_text_is_refused_unless_the_operation_drops_it(self) -> None:
        assert set(errors(Filled, {"name": "x", "slug": "", "ownerId": ""})) == {"slug", "ownerId"}

    def test_an_empty_text_in_an_update_is_refused_with_how_to_clear_the_field(self) -> None:
        messages = errors(Renamed, {"slug": "", "name": ""})
        assert HOW_TO_CLEAR in messages["slug"]
        assert messages["name"].endswith('received string ""')


class TestFromQuery:
    @pytest.mark.parametrize(
        ("query", "read"),
        [
            ({"page": ["2"]}, {"page": 2}),
            ({"page": ["007"]}, {"page": 7}),
            ({"page": ["-1"]}, {"page": -1}),
            ({"page": ["2.0"]}, {"page": 2}),
            ({"minPrice": ["0"]}, {"minPrice": 0}),
            ({"isGift": ["true"]}, {"isGift": True}),
            ({"isGift": ["false"]}, {"isGift": False}),
            ({"search": ["5"]}, {"search": "5"}),
            ({"search": ["true"]}, {"search": "true"}),
            ({"search": [""]}, {"search": ""}),
            ({"status": ["new"]}, {"status": "new"}),
            ({"ids": ["1", "2"]}, {"ids": ["1", "2"]}),
            ({"ids": ["1"]}, {"ids": ["1"]}),
            ({"numbers": ["1", "x"]}, {"numbers": [1, "x"]}),
            ({"min_price": ["1"], "unknown": ["1", "2"]}, {"min_price": "1", "unknown": "2"}),
            ({"page": []}, {}),
            ({}, {}),
        ],
    )
    def test_query_values_are_parsed_by_their_declared_type(
        self, query: dict[str, list[str]], read: dict[str, Any]
    ) -> None:
        parsed = from_query(OrderQuery, query)
        assert parsed == read
        assert {name: type(value) for name, value in parsed.items()} == {
            name: type(value) for name, value in read.items()
        }

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            *(({"page": [text]}, "page") for text in ("", "1.5", "+1", " 1", "1e2", "٣", "0x1")),
            *(({"isGift": [text]}, "isGift") for text in ("", "True", "1", "yes")),
            ({"status": [""]}, "status"),
            ({"numbers": ["1", "x"]}, "numbers.1"),
        ],
    )
    def test_unreadable_query_values_are_left_for_validation(
        self, query: dict[str, list[str]], field: str
    ) -> None:
        messages = errors(OrderQuery, from_query(OrderQuery, query))
        assert list(messages) == [field]
        assert 'received string "' in messages[field]


class Meeting(Wire):
    """An event with a start time."""

    at: When = Field(description="When.")


class TestTimes:
    @pytest.mark.parametrize(
        ("text", "read"),
        [
            ("2030-01-31", "2030-01-31"),
            ("2030-01-31 10:00", "2030-01-31T10:00:00"),
            ("2030-01-31T10:00 03:00", "2030-01-31T10:00:00+03:00"),
            ("2030-01-31T10:00:00.500 0530", "2030-01-31T10:00:00.500000+05:30"),
            ("2030-01-31 10:00 03:00", "2030-01-31T10:00:00+03:00"),
        ],
    )
    def test_a_space_before_an_offset_is_read_as_a_plus(self, text: str, read: str) -> None:
        assert parse(Meeting, {"at": text}).at.isoformat() == read

    @pytest.mark.parametrize(
        ("moment", "formatted"),
        [
            (datetime(2027, 1, 15, 12, tzinfo=UTC), "2027-01-15T12:00:00.000Z"),
            (datetime(2027, 1, 15, 12, 0, 0, 987654, tzinfo=UTC), "2027-01-15T12:00:00.987Z"),
            (
                datetime(2027, 1, 1, 2, tzinfo=timezone(timedelta(hours=3))),
                "2026-12-31T23:00:00.000Z",
            ),
        ],
    )
    def test_times_are_shown_in_utc_with_milliseconds_and_z(
        self, moment: datetime, formatted: str
    ) -> None:
        parsed = Moment(created_at=moment)
        assert parsed.model_dump(by_alias=True) == {"createdAt": formatted}
        assert parsed.model_dump(by_alias=True, mode="json") == {"createdAt": formatted}
