"""Validation of submitted values by field type, with messages in the form's language."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.errors import FieldError
from chalicelib.domains.leads.rules.form_fields import (
    MAX_PHONE,
    MAX_TEXT,
    MAX_TEXTAREA,
    FieldSpec,
    Place,
    contact,
    language,
    name_for,
    rejection,
    validate,
)
from chalicelib.domains.leads.rules.form_texts import form_text
from chalicelib.lib import emails
from tests.support.sweep import sweep

LONGEST_EMAIL = f"{'a' * 64}@{'b' * 63}.{'c' * 60}.{'d' * 60}.com"
TYPES = [
    "text",
    "textarea",
    "email",
    "phone",
    "number",
    "select",
    "checkbox",
    "date",
    "hidden",
    "consent",
]
OPTIONS = ("Красный", "Синий")
MOSCOW = Place("RU", "Europe/Moscow")


def field(kind: str, *, required: bool = False, name: str = "a") -> FieldSpec:
    return FieldSpec(name, "Поле", kind, required, OPTIONS if kind == "select" else ())


def cleaned(kind: str, value: Any, spoken: str = "ru") -> Any:
    """Return the cleaned value, or None if nothing is left."""
    data, errors = validate([field(kind)], {"a": value}, spoken, MOSCOW)
    assert errors == []
    return data.get("a")


def refusal(kind: str, value: Any, spoken: str = "en", *, required: bool = False) -> str:
    data, errors = validate([field(kind, required=required)], {"a": value}, spoken, MOSCOW)
    assert data == {}
    assert [error.field for error in errors] == ["a"]
    return errors[0].message


class TestValues:
    @pytest.mark.parametrize(
        ("kind", "entered", "expected"),
        [
            ("text", "  Анна \r\n Каренина\0 ", "Анна Каренина"),
            ("text", 79991234567, "79991234567"),
            ("text", "\u202eевил", "евил"),
            ("textarea", " один\r\nдва\rтри\n\n\x07 ", "один\nдва\nтри"),
            ("hidden", " spring ", "spring"),
            ("email", " Ada@Example.COM ", "Ada@example.com"),
            ("email", "почта@пример.рф", "почта@пример.рф"),
            ("phone", "8 (999) 123-45-67, доб. 12", "8 (999) 123-45-67, доб. 12"),
            ("phone", "+44 20 7946 0123 ext 5", "+44 20 7946 0123 ext 5"),
            (
                "phone",
                "\u202a8\u00a0903\u202f111\u00ad-22-33\u202c (Viber)",
                "8 903 111-22-33 (Viber)",
            ),
            (
                "phone",
                "в любой день после 18: 8 903 111-22-33!",
                "в любой день после 18: 8 903 111-22-33!",
            ),
            ("email", "\ufeffada\u00ad@example.com", "ada@example.com"),
            ("text", "co\u00adop", "co\u00adop"),
            ("phone", 79991234567, "79991234567"),
            ("phone", "12345", "12345"),
            ("phone", "1" * 40, "1" * 40),
            ("phone", "1234", "1234"),
            ("phone", "call me", "call me"),
            ("text", ["a", " b ", "", "a"], ["a", "b"]),
            ("text", ["a"], "a"),
            ("select", ["Синий", "Красный"], ["Синий", "Красный"]),
            ("email", ["ada@example.com", ""], "ada@example.com"),
            ("number", [1, "2,5"], [1, 2.5]),
            ("checkbox", ["0", "1"], True),
            ("consent", ["0", "1"], True),
            ("date", "2026-12-31T00:00:00.000Z", "2026-12-31"),
            ("date", "2026-12-31T00:00:00+11:00", "2026-12-31"),
            ("date", "2026-12-31T10:30:00", "2026-12-31"),
            ("date", "2026-12-31 10:30", "2026-12-31"),
            ("date", "2026-12-31T22:30:00Z", "2026-12-31"),
            ("date", "2026-12-30T21:00:00.000Z", "2026-12-31"),
            ("phone", "+" * (MAX_PHONE - 5) + "12345", "+" * (MAX_PHONE - 5) + "12345"),
            ("email", LONGEST_EMAIL, LONGEST_EMAIL),
            ("text", "a" * MAX_TEXT, "a" * MAX_TEXT),
            ("text", 10**30 - 1, "9" * 30),
            ("select", " Синий ", "Синий"),
            ("checkbox", "on", True),
            ("checkbox", "Подписаться", True),
            ("checkbox", True, True),
            ("checkbox", 1, True),
            ("consent", "да", True),
            ("date", "2030-01-31", "2030-01-31"),
            ("date", "31.1.2030", "2030-01-31"),
        ],
    )
    def test_values_are_stored_in_a_normal_form(
        self, kind: str, entered: Any, expected: Any
    ) -> None:
        assert cleaned(kind, entered) == expected

    @pytest.mark.parametrize(
        ("entered", "spoken", "number"),
        [
            ("12", "ru", 12),
            ("12.0", "ru", 12),
            ("2,5", "ru", 2.5),
            ("2,5", "en", 2.5),
            ("1 234,5", "ru", 1234.5),
            ("1\u00a0234\u202f567", "ru", 1234567),
            ("1,234", "en", 1234),
            ("1,234", "ru", 1.234),
            ("1,234,567", "ru", 1234567),
            ("1,234.5", "en", 1234.5),
            ("\u22123", "ru", -3),
            ("+7", "ru", 7),
            (0, "ru", 0),
            (-2.5, "ru", -2.5),
            (1e-7, "ru", 1e-7),
            (10**15, "ru", 10**15),
        ],
    )
    def test_numbers_are_read_in_common_spellings(
        self, entered: Any, spoken: str, number: float
    ) -> None:
        number_read = cleaned("number", entered, spoken)
        assert number_read == number
        assert type(number_read) is type(number)

    @pytest.mark.parametrize("kind", TYPES)
    @pytest.mark.parametrize("nothing", [None, "", "  \r\n ", "\u200b"])
    def test_empty_values_are_left_out(self, kind: str, nothing: Any) -> None:
        if kind in {"checkbox", "consent"} and nothing == "\u200b":
            return
        assert cleaned(kind, nothing) is None

    @pytest.mark.parametrize(
        "value", ["off", "false", "0", "Нет", "N", "none", "не согласен", "null", False, 0]
    )
    def test_unticked_checkboxes_are_left_out(self, value: Any) -> None:
        assert cleaned("checkbox", value) is None

    @sweep(
        "value",
        [
            *("on", "true", "1", "yes", "Y", "OK", "checked", "I agree", "accepted"),
            *("Да", "да.", "согласен", "Согласна", " я согласен ", "принимаю", True, 1),
        ],
    )
    def test_only_a_word_for_yes_is_a_consent(self, value: Any) -> None:
        assert cleaned("consent", value) is True

    @sweep(
        "value",
        [
            *("N", "none", "no", "0", "false", "не согласен", "нет", "maybe", "2", "<да>"),
            *("no, да", "на усмотрение", "не даю согласие", "undefined", "disagree"),
            *(2, 0, -1, 1.5, False, None, {"a": 1}, ["on", "off"], ["да", "нет"], []),
        ],
    )
    def test_anything_else_is_no_consent(self, value: Any) -> None:
        assert cleaned("consent", value) is None
        assert "tick" in refusal("consent", value, required=True)

    @sweep(
        ("kind", "mask"),
        [
            *(
                ("phone", mask)
                for mask in ("+7 (___) ___-__-__", "+7", "+7 (", "8 (___) ___ __ __")
            ),
            *(
                ("phone", mask)
                for mask in ("+375 (__) ___-__-__", "(___) ___-____", "+_(___)", "+")
            ),
            *(("phone", mask) for mask in ("+7 (xxx) xxx-xx-xx", "+7 ### ###-##-##")),
            *(("date", mask) for mask in ("__.__.____", "__/__/____")),
            ("number", "___"),
        ],
    )
    def test_a_mask_of_a_control_is_empty(self, kind: str, mask: str) -> None:
        assert cleaned(kind, mask) is None
        assert refusal(kind, mask, required=True) == form_text("en", "required")

    @sweep(
        "text",
        ["+7 (916) ___-__-__", "112", "8 029 123-45-67", "06 12 34 56 78", "call me", "1234"],
    )
    def test_required_phone_must_be_a_valid_number(self, text: str) -> None:
        assert cleaned("phone", text) == text
        assert "+7\u00a0912\u00a0345-67-89" in refusal("phone", text, required=True)

    def test_undeclared_fields_are_no_fields_of_the_form(self) -> None:
        data, errors = validate([field("text")], {"a": "1", "b": "2", "_page": "3"}, "en", MOSCOW)
        assert (data, errors) == ({"a": "1"}, [])

    def test_all_fields_are_checked_in_one_pass(self) -> None:
        fields = [field("email", name="a"), field("date", name="b"), field("text", name="c")]
        data, errors = validate(fields, {"a": "x", "b": "y", "c": "z"}, "en", MOSCOW)
        assert data == {"c": "z"}
        assert [error.field for error in errors] == ["a", "b"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("kind", "value", "says"),
        [
            ("email", "ada@", "ada@example.com"),
            ("email", f"a{LONGEST_EMAIL}", "ada@example.com"),
            ("email", f"{LONGEST_EMAIL}m", "ada@example.com"),
            ("email", True, "ada@example.com"),
            ("phone", "1" * 41, "+7\u00a0912\u00a0345-67-89"),
            ("phone", "+" * (MAX_PHONE - 4) + "12345", "+7\u00a0912\u00a0345-67-89"),
            ("phone", "<b>1234567</b>", "+7\u00a0912\u00a0345-67-89"),
            ("number", "ten", "10 or 2.5"),
            ("number", "1.2.3", "10 or 2.5"),
            ("number", "1e5", "10 or 2.5"),
            ("number", "٣", "10 or 2.5"),
            ("number", "9" * 16, "10 or 2.5"),
            ("number", 10**400, "10 or 2.5"),
            ("number", True, "10 or 2.5"),
            ("number", [[1]], "10 or 2.5"),
            ("select", "Зелёный", "one of: Красный, Синий."),
            ("select", "красный", "Красный, Синий"),
            ("date", "2030-02-30", "2030-01-31"),
            ("date", "01/02/2030", "2030-01-31"),
            ("date", "20300131", "2030-01-31"),
            ("date", "0000-01-01", "2030-01-31"),
            ("checkbox", {"a": 1}, "tick"),
            ("text", [["a"]], "enter some text"),
            ("text", ["a", {"a": "b"}], "enter some text"),
            ("select", ["Синий", "Зелёный"], "Красный, Синий"),
            ("date", "2026-12-31T25:00:00Z", "2030-01-31"),
            ("date", "2026-02-30T00:00:00Z", "2030-01-31"),
            ("text", {"a": "b"}, "enter some text"),
            ("text", True, "enter some text"),
            ("text", "a" * (MAX_TEXT + 1), "Enter at most 1000 characters. This text has 1001."),
            ("text", 10**30, "Enter at most 30 characters. This text has 31+."),
            ("textarea", "a" * (MAX_TEXTAREA + 1), "at most 10000 characters"),
        ],
    )
    def test_a_refusal_names_the_expected_value(self, kind: str, value: Any, says: str) -> None:
        assert says in refusal(kind, value)

    @pytest.mark.parametrize("kind", TYPES)
    def test_a_missing_required_field_is_named_in_the_forms_language(self, kind: str) -> None:
        assert refusal(kind, "", "en", required=True).startswith("Please ")
        russian = refusal(kind, None, "ru", required=True)
        assert language(russian, []) == "ru"

    def test_fields_are_named_by_their_labels(self) -> None:
        fields = [
            FieldSpec("email", "Почта", "email"),
            FieldSpec("name", "Имя", "text", required=True),
            FieldSpec("day", "День", "date"),
        ]
        _, errors = validate(fields, {"email": "x"}, "ru", MOSCOW)
        failure = rejection(fields, errors, "ru")
        assert failure.message == "Форма не отправлена. Проверьте поля: Почта, Имя."
        assert [error.field for error in failure.errors] == ["email", "name"]

    def test_an_error_elsewhere_appears_with_its_message(self) -> None:
        error = FieldError("items", "the product is sold out.")
        failure = rejection([], [error], "en")
        assert failure.message.endswith(
            "Please check these fields: items: the product is sold out."
        )

    def test_overlong_address_is_refused_before_parsing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The library takes a second to read 200 KB."""
        parsed: list[str] = []
        monkeypatch.setattr(emails, "find_email", parsed.append)
        assert "at most 1000 characters" in refusal("email", f"{'a' * 200_000}@example.com")
        assert parsed == []

    def test_a_long_list_of_options_is_cut(self) -> None:
        options = tuple(f"Вариант {i}" for i in range(500))
        many = FieldSpec("a", "A", "select", required=True, options=options)
        _, errors = validate([many], {}, "ru", MOSCOW)
        assert len(errors[0].message) < 250
        assert "…" in errors[0].message

    @given(
        st.sampled_from(TYPES),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ),
        st.sampled_from(["ru", "en"]),
    )
    def test_any_value_is_stored_in_normal_form_or_refused(
        self, kind: str, value: Any, spoken: str
    ) -> None:
        data, errors = validate([field(kind)], {"a": value}, spoken, MOSCOW)
        assert not (data and errors)
        # Cleaning a cleaned value changes nothing.
        assert validate([field(kind)], data, spoken, MOSCOW) == (data, [])


class TestLanguage:
    def test_the_language_is_russian_if_any_text_is_russian(self) -> None:
        assert language("Order", ["Name", "Телефон"]) == "ru"
        assert language("Заявка", []) == "ru"
        assert language("Order", ["Name", "E-mail"]) == "en"


class TestContact:
    def test_the_first_given_contact_is_used(self) -> None:
        fields = [
            FieldSpec("topic", "Topic", "text"),
            FieldSpec("work", "Work", "email"),
            FieldSpec("home", "Home", "email"),
            FieldSpec("phone", "Phone", "phone"),
            FieldSpec("name", "Name", "text"),
        ]
        data = {"topic": "Bread", "home": "a@b.example", "phone": "123456", "name": "Ada"}
        assert contact(fields, data) == ("Ada", "a@b.example", "123456")
        del data["name"]
        assert contact(fields, data) == ("Bread", "a@b.example", "123456")
        assert contact(fields, {}) == (None, None, None)

    def test_name_that_is_not_a_string_is_ignored(self) -> None:
        fields = [FieldSpec("topic", "Topic", "text"), FieldSpec("name", "Name", "checkbox")]
        assert contact(fields, {"topic": "Bread", "name": True}) == ("Bread", None, None)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("E-mail", "e_mail"),
        ("5 звёзд", "field_5_zvezd"),
        ("…", "field"),
        ("Items", "items_2"),
        ("Имя", "imya_2"),
        ("x" * 300, "x" * 36),
        ("x" * 35 + " y", "x" * 35),
    ],
)
def test_the_name_of_a_new_field(label: str, name: str) -> None:
    assert name_for(label, {"imya"}) == name
