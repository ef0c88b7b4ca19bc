"""Dates of birth are read as programs write them, and what is unclear is named."""

import pytest

from chalicelib.domains.imports.flows.reading import read_table
from chalicelib.domains.imports.rules.tables.rows import Table

pytestmark = pytest.mark.usefixtures("time")


def read(*cells: str, country: str = "RU", header: str = "Birthday") -> Table:
    lines = [f'+7912345{number:04d},"{cell}"' for number, cell in enumerate(cells)]
    raw = "\n".join([f'Phone,"{header}"', *lines])
    return read_table("clients", raw.encode(), country=country)


def birthdays(table: Table) -> list[str | None]:
    return [row.item.get("birthday") for row in table.rows]


@pytest.mark.parametrize(
    ("cell", "day"),
    [
        ("1985-04-12", "1985-04-12"),
        ("1985-04-12 00:00:00", "1985-04-12"),
        ("1985/4/12", "1985-04-12"),
        ("19850412", "1985-04-12"),
        ("19850412T231000Z", "1985-04-12"),
        ("12.04.1985", "1985-04-12"),
        ("12.04.1985 0:00:00", "1985-04-12"),
        ("12.04.1985 г.", "1985-04-12"),
        ("4/25/1985", "1985-04-25"),
        ("1/25/1985", "1985-01-25"),
        ("12/25/1985", "1985-12-25"),
        ("25/4/1985", "1985-04-25"),
        ("04/04/1985", "1985-04-04"),
        ("12 апреля 1985 г.", "1985-04-12"),
        ("12 мая 1985", "1985-05-12"),
        ("April 12, 1985", "1985-04-12"),
        ("1985 April 12", "1985-04-12"),
        ("1985 April 5", "1985-04-05"),
        ("1900-01-01", "1900-01-01"),
        ("2027-01-15", "2027-01-15"),
        ("12th of April 1985", "1985-04-12"),
        ("12-Apr-85", "1985-04-12"),
        ("12.04.85", "1985-04-12"),
    ],
)
def test_a_date_is_read_as_programs_write_it(cell: str, day: str) -> None:
    table = read(cell)
    assert birthdays(table) == [day]
    assert not table.rows[0].notes
    assert not table.ignored


@pytest.mark.parametrize("cell", ["0/0/00", "00.00.0000", "0000-00-00", " ", "-"])
def test_outlook_s_date_for_none_is_no_birthday(cell: str) -> None:
    table = read(cell)
    assert (birthdays(table), table.rows[0].notes, table.ignored) == ([None], [], [])


@pytest.mark.parametrize(
    "cell",
    [
        *(" --04-12", "--0412", "12.04", "12 апреля", "April 12", "circa 1800", "soon", "31149"),
        *("1899-12-31", "12 ap 1985", "12 April May 1985", "12 1985"),
        *("30.02.1985", "1604-04-12", "2027-01-16", "4501-01-01", "1985", "1985-04", "12041985"),
    ],
)
def test_what_is_no_whole_date_is_named_and_the_client_arrives(cell: str) -> None:
    table = read(cell)
    (row,) = table.rows
    assert row.fault is None
    assert "birthday" not in row.item
    assert cell.strip() == row.notes[0].facts["text"]
    assert [*table.ignored] == ["Birthday"]


@pytest.mark.parametrize(
    ("cell", "country", "code"),
    [
        ("--04-12", "RU", "no_year"),
        ("12.04", "RU", "no_year"),
        ("April 12", "RU", "no_year"),
        ("April May", "RU", "no_date"),
        ("12 13", "RU", "no_date"),
        ("soon", "RU", "no_date"),
        ("30.02.1985", "RU", "no_date"),
        ("03/04/1985", "CA", "either_order"),
        ("03/04/1985", "", "either_order"),
    ],
)
def test_the_reason_says_why_a_date_is_left_out(cell: str, country: str, code: str) -> None:
    (note,) = read(cell, country=country).rows[0].notes
    assert (note.code, note.facts["field"]) == (code, "birthday")


def test_the_number_of_dates_that_are_left_out_is_shown() -> None:
    table = read("1985-04-12", "soon", "--04-12")
    assert table.partly_read == {"Birthday": 2}


@pytest.mark.parametrize(
    ("cells", "country", "day"),
    [
        (("03/04/1985", "25/04/1985"), "US", "1985-04-03"),
        (("03/04/1985", "04/25/1985"), "GB", "1985-03-04"),
        (("03.04.1985", "04.25.1985"), "RU", "1985-03-04"),
    ],
)
def test_one_value_of_a_column_decides_the_order_of_all(
    cells: tuple[str, ...], country: str, day: str
) -> None:
    table = read(*cells, country=country)
    assert birthdays(table)[0] == day
    assert not table.notes


@pytest.mark.parametrize(
    ("country", "day", "order"),
    [("US", "1985-03-04", "month"), ("GB", "1985-04-03", "day"), ("RU", "1985-04-03", "day")],
)
def test_the_country_decides_if_no_value_does_and_the_preview_says_so(
    country: str, day: str, order: str
) -> None:
    table = read("03/04/1985", country=country)
    assert birthdays(table) == [day]
    (note,) = table.notes
    assert note.code == f"{order}_first"


@pytest.mark.parametrize(
    ("cells", "country"),
    [
        (("03/04/1985", "25/04/1985", "04/25/1985"), "US"),
        (("03.04.1985", "25.04.1985", "04.25.1985"), "RU"),
        (("03/04/1985",), "CA"),
    ],
)
def test_a_date_stays_unread_if_nothing_decides_its_order(
    cells: tuple[str, ...], country: str
) -> None:
    table = read(*cells, country=country)
    first, *others = birthdays(table)
    assert first is None
    assert set(others) <= {"1985-04-25"}
    assert not table.notes
    assert table.rows[0].notes[0].facts["text"] == cells[0]


def test_the_country_decides_although_some_dates_do_not_ask_it() -> None:
    table = read("03/04/1985", "05/05/1985", country="US")
    assert birthdays(table) == ["1985-03-04", "1985-05-05"]
    assert [note.code for note in table.notes] == ["month_first"]


@pytest.mark.parametrize(("cell", "day"), [("03.04.1985", "04-03"), ("05/05/1985", "05-05")])
def test_dates_with_dots_and_equal_numbers_do_not_ask_the_country(cell: str, day: str) -> None:
    table = read(cell, country="US")
    assert birthdays(table) == [f"1985-{day}"]
    assert not table.notes


def test_a_number_above_twelve_is_a_day_in_every_country() -> None:
    assert birthdays(read("13/4/1985", country="US")) == ["1985-04-13"]


def test_a_year_of_two_digits_is_named_if_it_may_be_another_century() -> None:
    table = read("12.04.05", "12.04.85")
    assert birthdays(table) == ["2005-04-12", "1985-04-12"]
    assert [len(row.notes) for row in table.rows] == [1, 0]
    (note,) = table.rows[0].notes
    facts = {"text": "12.04.05", "value": "2005-04-12", "field": "birthday"}
    assert (note.code, dict(note.facts)) == ("read_as", facts)


@pytest.mark.parametrize("header", ["Дата рождения", "День рождения", "Date of birth", "DOB"])
def test_the_column_is_recognized(header: str) -> None:
    assert birthdays(read("12.04.1985", header=header)) == ["1985-04-12"]


@pytest.mark.parametrize(
    ("line", "day"),
    [
        ("BDAY:19850412", "1985-04-12"),
        ("BDAY:1985-04-12", "1985-04-12"),
        ("BDAY;VALUE=date:1985-04-12", "1985-04-12"),
        ("BDAY:1985-04-12T23:10:00Z", "1985-04-12"),
        ("BDAY:19850412T231000", "1985-04-12"),
        ("BDAY:--0412", None),
        ("BDAY;VALUE=text:circa 1985", None),
        ("BDAY;X-APPLE-OMIT-YEAR=1604:1604-04-12", None),
        ("BDAY;X-APPLE-OMIT-YEAR=1900:19000412", None),
        ("BDAY;value=date:1604-04-12", None),
    ],
)
def test_the_birthday_of_a_vcard_is_read(line: str, day: str | None) -> None:
    card = (
        f"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Ada\r\nTEL:+44 20 7946 0018\r\n{line}\r\nEND:VCARD\r\n"
    )
    table = read_table("clients", card.encode(), country="GB")
    assert birthdays(table) == [day]
    assert len(table.rows[0].notes) == (day is None)
