"""Tables of services are read, and each row that cannot be is refused with its reason."""

from typing import Any

import pytest

from chalicelib.domains.imports.flows.reading import read_table
from chalicelib.domains.imports.rules.reasons import Reason
from chalicelib.domains.imports.rules.tables.rows import RECOGNIZED, Column, Row, Table
from chalicelib.domains.imports.rules.tables.service_table import minutes
from chalicelib.domains.imports.rules.tables.table_errors import CellError

COLUMNS = "Название;Длительность;Цена;Описание;Категория;Статус;ID"


def read(*lines: str, header: str = COLUMNS, **more: Any) -> Table:
    return read_table("services", "\n".join([header, *lines]).encode(), country="RU", **more)


def row(*cells: str) -> Row:
    (read_row,) = read(";".join(cells)).rows
    return read_row


def fault(reason: Reason | None) -> tuple[str, dict[str, str]]:
    assert reason is not None
    return reason.code, dict(reason.facts)


class TestRows:
    def test_each_column_fills_a_field(self) -> None:
        cells = [
            " Стрижка  женская ",
            "1 ч",
            "1 500",
            "<p>С мытьём</p>",
            "Волосы",
            "Активна",
            "A 1",
        ]
        assert row(*cells) == Row(
            2,
            cells,
            {
                "name": "Стрижка женская",
                "durationMin": 60,
                "price": 150_000,
                "description": "С мытьём",
                "category": "Волосы",
                "status": "active",
                "externalId": "A 1",
            },
            notes=[],
        )

    def test_empty_cells_fill_none(self) -> None:
        assert row("Стрижка", "", "", "", "", "", "").item == {"name": "Стрижка"}

    @pytest.mark.parametrize(
        ("text", "status"),
        [
            *((text, "active") for text in ("да", "1", "Активна", "Активный", "active")),
            *(
                (text, "inactive")
                for text in ("нет", "0", "неактивна", "Неактивный", "Архив", "inactive")
            ),
        ],
    )
    def test_a_status_is_one_of_the_words_of_programs(self, text: str, status: str) -> None:
        assert row("Стрижка", "", "", "", "", text, "").item["status"] == status

    @pytest.mark.parametrize(
        ("cells", "code", "facts"),
        [
            (("", "60"), "required", {"field": "name"}),
            (("", "soon"), "required", {"field": "name"}),
            (("A", "soon"), "not_a_duration", {"text": "soon"}),
            (("A", "", "10,000"), "ambiguous_number", {"text": "10,000", "field": "price"}),
            (("A", "", "", "", "", "perhaps"), "unknown_status", {"text": "perhaps"}),
        ],
    )
    def test_a_row_is_refused_with_the_field_and_the_text(
        self, cells: tuple[str, ...], code: str, facts: dict[str, str]
    ) -> None:
        refused = row(*cells, *[""] * (6 - len(cells)), "A-1")
        assert fault(refused.fault) == (code, facts)
        assert refused.item["externalId"] == "A-1"

    @pytest.mark.parametrize(
        ("text", "price", "lowest"),
        [
            ("от 1 500", 150_000, "1 500"),
            ("From 10", 1_000, "10"),
            ("900 - 1200", 90_000, "900"),
            ("900–1200", 90_000, "900"),
        ],
    )
    def test_of_a_range_the_lowest_price_is_read_with_a_note(
        self, text: str, price: int, lowest: str
    ) -> None:
        read_row = row("A", "", text, "", "", "", "")
        (note,) = read_row.notes
        assert read_row.item["price"] == price
        assert fault(note) == ("read_as", {"text": text, "value": lowest, "field": "price"})

    def test_a_single_price_needs_no_note(self) -> None:
        assert not row("A", "", "900", "", "", "", "").notes


class TestDurations:
    @pytest.mark.parametrize(
        ("text", "header", "expected"),
        [
            ("90", "", 90),
            ("90,4", "", 90),
            ("0:45", "", 45),
            ("1:30", "", 90),
            ("01:30:00", "", 90),
            ("1 ч 30 мин", "", 90),
            ("1h 30min", "", 90),
            ("2:05:00", "", 125),
            ("2 ч", "", 120),
            ("1,5 часа", "", 90),
            ("1.25 hours", "", 75),
            ("45 мин", "", 45),
            ("1 h 5 min", "", 65),
            ("1ч15м", "", 75),
            ("1h30min", "", 90),
            ("1 час и 5 минут", "", 65),
            ("1 hr., 5 min.", "", 65),
            ("1,5", "длительность, час", 90),
            ("2700", "duration sec", 45),
        ],
    )
    def test_a_duration_is_read_in_minutes(self, text: str, header: str, expected: int) -> None:
        assert minutes(text, header) == expected

    @pytest.mark.parametrize(
        "text",
        [
            *("soon", "1:5", "-90", "90 €", "1.2.3", "1:30:10"),
            *("1 day 30 min", "60-90 min", "30 min 1 h", "1 h 30 min each", "1 month"),
        ],
    )
    def test_anything_else_is_refused_with_its_text(self, text: str) -> None:
        with pytest.raises(CellError) as refused:
            minutes(text)
        assert fault(refused.value.reason) == ("not_a_duration", {"text": text})


class TestRepeatedRows:
    def refused(self, *lines: str) -> list[tuple[str, dict[str, str]] | None]:
        rows = read(*lines, header="Название;ID;Длительность").rows
        return [each.fault and fault(each.fault) for each in rows]

    def test_rows_of_one_code_are_refused_with_each_other(self) -> None:
        first, other, third = self.refused("A;1;", "A;2;", "B;1;")
        assert first == ("repeated_key", {"rows": "4", "field": "externalId"})
        assert other is None
        assert third == ("repeated_key", {"rows": "2", "field": "externalId"})

    def test_without_a_code_rows_of_one_name_are(self) -> None:
        first, other, third = self.refused("Стрижка;;", "Укладка;;", "СТРИЖКА;;")
        assert first == ("repeated_key", {"rows": "4", "field": "name"})
        assert other is None
        assert third == ("repeated_key", {"rows": "2", "field": "name"})

    def test_a_row_keeps_the_reason_that_it_has(self) -> None:
        first, second = self.refused("A;1;soon", "A;1;")
        assert first == ("not_a_duration", {"text": "soon"})
        assert second == ("repeated_key", {"rows": "2", "field": "externalId"})

    def test_rows_without_a_name_are_not_the_same(self) -> None:
        assert self.refused(";;10", ";;10") == [("required", {"field": "name"})] * 2


class TestTables:
    def test_without_a_column_of_names_one_must_be_chosen(self) -> None:
        table = read("Стрижка;60;x", header="Что;Длительность;Другое")
        assert fault(table.fault) == ("no_name_column", {})
        assert (table.rows, table.ignored, table.partly_read) == ([], (), {})
        assert table.columns == [
            Column("Что", None, ["Стрижка"]),
            Column("Длительность", "durationMin", ["60"]),
            Column("Другое", None, ["x"]),
        ]
        chosen = read("Стрижка;60;x", header="Что;Длительность;Другое", chosen={"Что": "name"})
        assert chosen.rows[0].item == {"name": "Стрижка", "durationMin": 60}
        assert chosen.ignored == ["Другое"]

    def test_of_several_columns_of_a_field_one_must_be_chosen(self) -> None:
        table = read("Стрижка;Волосы", header="Что;Кто", chosen={"Что": "name", "Кто": "name"})
        assert fault(table.fault) == ("repeated_columns", {"text": "name"})
        assert not table.rows

    def test_a_row_of_sums_is_no_service(self) -> None:
        rows = read("Стрижка;60;900;;;;", "Итого;;900;;;;").rows
        assert [each.item["name"] for each in rows] == ["Стрижка"]

    def test_codes_are_marked_as_names_of_columns(self) -> None:
        table = read("Стрижка;;;;;;7")
        assert (table.codes, table.delimiter, table.shop) == (frozenset({6}), ";", "")
        assert RECOGNIZED not in {column.field for column in table.columns}

    @pytest.mark.parametrize(
        ("header", "cell"),
        [
            ("Длительность, мин", "90"),
            ("Длительность, сек", "5400"),
            ("Длительность (ч)", "1.5"),
            ("Duration (minutes)", "90"),
            ("Duration (hours)", "1,5"),
        ],
    )
    def test_the_unit_of_a_duration_is_read_from_its_header(self, header: str, cell: str) -> None:
        table = read(f"Стрижка;{cell}", header=f"Название;{header}")
        assert table.rows[0].item["durationMin"] == 90
