"""Cards of phones and programs are read as a table, whatever they are written by."""

import pytest

from chalicelib.domains.imports.rules import vcards
from chalicelib.domains.imports.rules.tables.table_errors import TableError
from chalicelib.domains.imports.rules.vcards import vcard_table


def card(*lines: str) -> str:
    return "\r\n".join(["BEGIN:VCARD", "VERSION:3.0", *lines, "END:VCARD", ""])


def read(raw: bytes) -> list[dict[str, str]]:
    """Return the filled cells of each card by the name of their column."""
    table = vcard_table(raw)
    return [
        {name: cell for name, cell in zip(table.names, cells, strict=True) if cell}
        for _, cells in table.lines
    ]


def one(*lines: str) -> dict[str, str]:
    (values,) = read(card(*lines).encode())
    return values


class TestFiles:
    def test_each_card_is_a_row_below_one_header(self) -> None:
        table = vcard_table((card("TEL:1", "FN:Ada") + card("FN:Bob", "EMAIL:b@x.org")).encode())
        assert table.names == ["name", "phone", "email"]
        assert table.lines == [(1, ["Ada", "1", ""]), (2, ["Bob", "", "b@x.org"])]
        assert table.delimiter == ","

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1251"])
    def test_a_file_is_read_in_the_encodings_of_programs(self, encoding: str) -> None:
        assert read(card("FN:Анна").encode(encoding)) == [{"name": "Анна"}]

    @pytest.mark.parametrize("mark", [b"\xff\xfe", b""])
    def test_bytes_that_are_no_text_hide_no_card(self, mark: bytes) -> None:
        encoding = "utf-16-le" if mark else "cp1251"
        # Half a surrogate, and a byte that the encoding does not have.
        broken = b"\x00\xd8" if mark else b"\x98"
        raw = mark + card("FN:Ada", "NOTE:?").encode(encoding).replace(b"?", broken, 1)
        assert read(raw)[0]["name"] == "Ada"

    def test_too_many_cards_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vcards, "MAX_CARDS", 2)
        assert len(read((card("FN:Ada") * 2).encode())) == 2
        with pytest.raises(TableError) as refused:
            read((card("FN:Ada") * 3).encode())
        reason = refused.value.reason
        assert (reason.code, dict(reason.facts)) == ("too_many_cards", {"most": "2"})

    def test_a_file_that_was_cut_off_keeps_its_last_card(self) -> None:
        cut = card("FN:Ada") + card("FN:Bob").partition("END")[0]
        assert [each["name"] for each in read(cut.encode())] == ["Ada", "Bob"]

    def test_what_is_between_cards_or_about_other_things_is_left_out(self) -> None:
        other = "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\nFN:Nobody\r\n"
        assert read((other + card("FN:Ada", "BEGIN:X", "END:X") + other).encode()) == [
            {"name": "Ada", "begin": "X", "end": "X"}
        ]

    def test_empty_cards_are_left_out(self) -> None:
        assert read(b"BEGIN:VCARD\r\nEND:VCARD\r\n" + card("FN:Ada").encode()) == [{"name": "Ada"}]

    def test_a_card_may_name_a_person_vcard(self) -> None:
        assert one("FN:VCARD", "TEL:1") == {"name": "VCARD", "phone": "1"}


class TestLines:
    def test_folded_lines_are_joined(self) -> None:
        assert one("NOTE:a", " b", "\tc", "  d", "FN:Ada") == {"name": "Ada", "notes": "abc d"}

    def test_a_line_that_folds_nothing_is_read_alone(self) -> None:
        assert read(b" \r\n" + card("FN:Ada").encode()) == [{"name": "Ada"}]

    def test_an_equals_sign_at_the_end_folds_only_quoted_printable_lines(self) -> None:
        assert one("NOTE:1+1=", "FN:Ada") == {"name": "Ada", "notes": "1+1="}

    @pytest.mark.parametrize("indent", ["", " "])
    def test_quoted_printable_goes_on_after_an_equals_sign(self, indent: str) -> None:
        quoted = "FN;ENCODING=QUOTED-PRINTABLE:=D0=90="
        assert one(quoted, f"{indent}=D0=BD=D0=BD=", f"{indent}=D0=B0") == {"name": "Анна"}

    def test_spaces_after_a_soft_line_break_belong_to_the_text(self) -> None:
        assert one("FN;ENCODING=QUOTED-PRINTABLE:Ada=", " Lovelace") == {"name": "Ada Lovelace"}

    @pytest.mark.parametrize("parameters", ["QUOTED-PRINTABLE", "encoding=quoted-printable"])
    @pytest.mark.parametrize(
        ("charset", "text"),
        [
            ("", "=D0=90=D0=BD=D0=BD=D0=B0"),
            (";CHARSET=UTF-8", "=D0=90=D0=BD=D0=BD=D0=B0"),
            (';charset="windows-1251"', "=C0=ED=ED=E0"),
            (";CHARSET=nonsense", "=C0=ED=ED=E0"),
            ("", "=C0=ED=ED=E0"),
        ],
    )
    def test_quoted_printable_is_read_in_its_charset(
        self, parameters: str, charset: str, text: str
    ) -> None:
        assert one(f"FN;{parameters}{charset}:{text}") == {"name": "Анна"}

    def test_other_texts_keep_equals_signs(self) -> None:
        assert one("FN:Ada", "NOTE:=41", "NOTE;8BIT:=42", "NOTE;7BIT:=43")["notes"] == (
            "=41\n=42\n=43"
        )

    def test_quoted_printable_may_have_letters_that_it_should_not(self) -> None:
        assert one("FN;QUOTED-PRINTABLE:A=64a ё") == {"name": "Ada"}

    def test_bytes_of_no_charset_hide_no_card(self) -> None:
        assert one("FN:Ada", "NOTE;QUOTED-PRINTABLE:=98=98")["name"] == "Ada"

    @pytest.mark.parametrize("encoding", ["BASE64", "ENCODING=b", "ENCODING=BASE64"])
    def test_pictures_are_not_kept(self, encoding: str) -> None:
        assert one("FN:Ada", f"PHOTO;{encoding}:/9j/4AAQ") == {"name": "Ada", "photo": "…"}

    def test_a_colon_in_quotes_does_not_end_the_parameters(self) -> None:
        assert one('TEL;X="a:b":1', "FN:Ada") == {"name": "Ada", "phone": "1"}

    def test_lines_without_a_colon_are_left_out(self) -> None:
        assert one("FN:Ada", "nonsense", "TEL") == {"name": "Ada"}

    def test_escaped_signs_are_read(self) -> None:
        values = one("FN:Ada\\, Countess\\; \\\\", "NOTE: a\\nb\\Nc ")
        assert values == {"name": "Ada, Countess; \\", "notes": "a\nb\nc"}


class TestProperties:
    @pytest.mark.parametrize(
        ("first", "preferred"),
        [
            ("TEL:1", "TEL;TYPE=CELL:2"),
            ("TEL:1", "TEL;TYPE=mobile:2"),
            ("TEL;TYPE=HOME:1", "TEL;TYPE=WORK;TYPE=PREF:2"),
            ("TEL;CELL:1", "TEL;HOME;PREF:2"),
            ("TEL;PREF=2:1", "TEL;PREF=1:2"),
            ("TEL;CELL:1", "TEL;PREF=100:2"),
            ("TEL;PREF=1:1", "TEL;TYPE=pref:2"),
        ],
    )
    def test_the_preferred_of_several_comes_first(self, first: str, preferred: str) -> None:
        assert one("FN:Ada", first, preferred)["phone"] == "2\n1"

    def test_a_preference_that_is_no_number_is_none(self) -> None:
        assert one("FN:Ada", "TEL;PREF=high:1", "TEL;CELL:2")["phone"] == "2\n1"

    def test_equal_values_are_one(self) -> None:
        assert one("FN:Ada", "TEL:1", "item2.TEL:1", "TEL: ")["phone"] == "1"

    @pytest.mark.parametrize(
        ("line", "column", "text"),
        [
            ("TEL;VALUE=uri:tel:+44-1", "phone", "+44-1"),
            ("TEL:TEL:+44-1", "phone", "+44-1"),
            ("EMAIL:mailto:a@b.co", "email", "a@b.co"),
            ("EMAIL:MAILTO:a@b.co", "email", "a@b.co"),
            ("CATEGORIES:vip,a\\,b", "tags", "vip\na,b"),
            ("ORG:Bakery;;Ovens\\; hot", "company", "Bakery, Ovens; hot"),
            ("ADR:;;Street 1;City;;;", "adr", "Street 1, City"),
            ("BDAY:1985-04-12", "birthday", "1985-04-12"),
            ("BDAY:1604-04-12", "birthday", "--04-12"),
            ("BDAY;X-APPLE-OMIT-YEAR=1900:1900-04-12", "birthday", "--04-12"),
            ("BDAY;X-APPLE-OMIT-YEAR=1900:1604-04-12", "birthday", "1604-04-12"),
            ("BDAY:--0412", "birthday", "--0412"),
            ("UID:urn:1", "uid", "urn:1"),
            ("X-Skype:ada", "x-skype", "ada"),
        ],
    )
    def test_a_property_fills_its_column(self, line: str, column: str, text: str) -> None:
        assert one("FN:Ada", line) == {"name": "Ada", column: text}

    def test_what_is_about_the_card_fills_none(self) -> None:
        assert one("FN:Ada", "REV:1", "PRODID:x", "KIND:individual", "SOURCE:x") == {"name": "Ada"}

    @pytest.mark.parametrize("name", ["KIND", "X-ADDRESSBOOKSERVER-KIND"])
    @pytest.mark.parametrize("kind", ["group", "Org"])
    def test_groups_and_companies_are_told_apart(self, name: str, kind: str) -> None:
        assert one("FN:All", f"{name}:{kind}")["kind"] == kind.lower()
        assert "kind" not in one("FN:All", "NOTE:group", f"TITLE:{kind}")


class TestNames:
    @pytest.mark.parametrize(
        ("lines", "name"),
        [
            (["FN:Ada", "N:Lovelace;Augusta;;;"], "Ada"),
            (["FN:Ada", "FN:Countess"], "Ada"),
            (["N:Lovelace;Ada;King;Lady;PhD"], "Ada King Lovelace"),
            (["N:Lovelace"], "Lovelace"),
            (["N:;Ada"], "Ada"),
            (["FN: ", "N:Lovelace;Ada"], "Ada Lovelace"),
            (["N:;;;;", "ORG:Bakery"], "Bakery"),
            (["ORG:Bakery"], "Bakery"),
            (["TEL:1"], ""),
        ],
    )
    def test_a_name_is_the_shown_one_or_made_of_parts_or_the_companys(
        self, lines: list[str], name: str
    ) -> None:
        assert one(*lines).get("name", "") == name
