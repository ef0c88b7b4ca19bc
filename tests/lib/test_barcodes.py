"""Reading barcodes of four formats, with their check digits and GTIN-14s."""

from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chalicelib.core.text import clean_digits
from chalicelib.lib.barcodes import FORMATS, BarcodeError, check_digit, parse

payloads = st.sampled_from(sorted(FORMATS)).flatmap(
    lambda length: st.text("0123456789", min_size=length - 1, max_size=length - 1)
)


def complete(payload: str) -> str:
    return payload + check_digit(payload)


class TestParse:
    @pytest.mark.parametrize(
        ("digits", "form", "gtin14"),
        [
            ("96385074", "EAN8", "00000096385074"),
            ("036000291452", "UPCA", "00036000291452"),
            ("4006381333931", "EAN13", "04006381333931"),
            ("3017624010701", "EAN13", "03017624010701"),
            ("10614141000415", "GTIN14", "10614141000415"),
            ("4600000000008", "EAN13", "04600000000008"),
        ],
    )
    def test_real_barcodes_are_read(self, digits: str, form: str, gtin14: str) -> None:
        barcode = parse(digits)
        assert (barcode.digits, barcode.format, barcode.gtin14) == (digits, form, gtin14)

    @pytest.mark.parametrize(
        "text",
        [
            " 4006381333931\n",
            "4-006381-333931",
            "4 006381 333931",
            "4006381\u00a0333931",
            "4\u2011006381\u2011333931",
            "\ufeff4006381333931\u200b",
            "４００６３８１３３３９３１",
            "٤٠٠٦٣٨١٣٣٣٩٣١",
        ],
    )
    def test_separators_invisible_characters_and_scripts_of_digits_do_not_matter(
        self, text: str
    ) -> None:
        assert parse(text).digits == "4006381333931"

    @given(payloads)
    def test_any_digits_with_their_check_digit_are_accepted(self, payload: str) -> None:
        barcode = parse(complete(payload))
        assert barcode.digits == complete(payload)
        assert barcode.format == FORMATS[len(payload) + 1]
        assert len(barcode.gtin14) == 14
        assert int(barcode.gtin14) == int(barcode.digits)

    @given(payloads, st.data())
    def test_any_single_mistyped_digit_is_refused(self, payload: str, data: st.DataObject) -> None:
        digits = complete(payload)
        place = data.draw(st.integers(0, len(digits) - 1))
        wrong = data.draw(st.sampled_from("0123456789").filter(lambda d: d != digits[place]))
        mistyped = digits[:place] + wrong + digits[place + 1 :]
        assume(len(mistyped) != 8 or mistyped[0] != "0")  # It may be a UPC-E code.
        with pytest.raises(BarcodeError):
            parse(mistyped)

    @pytest.mark.parametrize(
        ("upc_e", "upc_a"),
        [
            ("04252614", "042100005264"),
            ("0-123450-5", "012000003455"),
            ("01234523", "012200003453"),
            ("01234531", "012300000451"),
            ("01234543", "012340000053"),
            ("06543217", "065100004327"),
        ],
    )
    def test_a_upc_e_code_is_the_upc_a_code_that_it_shortens(self, upc_e: str, upc_a: str) -> None:
        barcode = parse(upc_e)
        assert (barcode.digits, barcode.format, barcode.gtin14) == (upc_a, "UPCA", f"00{upc_a}")

    def test_eight_digits_with_the_check_digit_of_an_ean_8_are_one(self) -> None:
        """Shops number their own goods so. A UPC-E code may have the same check digit."""
        assert parse("01234565").format == "EAN8"

    @given(st.text("0123456789", min_size=11, max_size=11))
    def test_all_formats_of_a_barcode_have_the_same_gtin14(self, payload: str) -> None:
        upc = complete(payload)
        forms = [parse(upc), parse("0" + upc), parse("00" + upc)]
        assert [barcode.format for barcode in forms] == ["UPCA", "EAN13", "GTIN14"]
        assert {barcode.gtin14 for barcode in forms} == {"00" + upc}

    @given(payloads, payloads)
    def test_different_barcodes_have_different_gtin14s(self, one: str, other: str) -> None:
        assume(int(one) != int(other))
        assert parse(complete(one)).gtin14 != parse(complete(other)).gtin14

    def test_an_error_names_the_expected_and_the_received_digit(self) -> None:
        with pytest.raises(
            BarcodeError, match=r'digit 1 at the end of "4006381333932", received 2'
        ):
            parse("4006381333932")

    @pytest.mark.parametrize(
        ("text", "received"),
        [
            ("", '"" (0 digits)'),
            (" - ", '" - " (0 digits)'),
            ("12345", '"12345" (5 digits)'),
            ("123456789", '"123456789" (9 digits)'),
            ("400638133393x", '"400638133393x"; "x" is not a digit'),
            ("4006381333931.", '"4006381333931."; "." is not a digit'),
            ("+4006381333931", '"+4006381333931"; "+" is not a digit'),
            ("４００６３８", '"４００６３８" (6 digits); send all 8 digits of the UPC-E code, or'),
            ("1" * 5000, '"' + "1" * 40 + '…" (5000 digits)'),
        ],
    )
    def test_an_invalid_barcode_is_refused_with_the_received_value(
        self, text: str, received: str
    ) -> None:
        with pytest.raises(BarcodeError) as failure:
            parse(text)
        expected = f"expected 8, 12, 13 or 14 digits, received {received}"
        assert str(failure.value).startswith(expected)

    @pytest.mark.parametrize("text", ["425261", "0425261"])
    def test_a_short_upc_e_code_is_refused_with_the_forms_to_send(self, text: str) -> None:
        with pytest.raises(
            BarcodeError, match=r"8 digits of the UPC-E code, or the 12 digits of its UPC-A"
        ):
            parse(text)

    @given(st.text(max_size=30) | st.text("0123456789 -", max_size=20))
    def test_any_text_is_accepted_or_refused_without_other_errors(self, text: str) -> None:
        with suppress(BarcodeError):
            read_digits = parse(text).digits
            assert read_digits in {
                clean_digits(text).replace("-", "").replace(" ", ""),
                read_digits[:12],
            }
            assert check_digit(read_digits[:-1]) == read_digits[-1]


class TestInStore:
    @pytest.mark.parametrize(
        ("payload", "form"),
        [
            ("020000000000", "EAN13"),
            ("029999999999", "EAN13"),
            ("040000000000", "EAN13"),
            ("049123456789", "EAN13"),
            ("200000000000", "EAN13"),
            ("210123401234", "EAN13"),
            ("299999999999", "EAN13"),
            ("20123401234", "UPCA"),
            ("40123401234", "UPCA"),
            ("0020123401234", "GTIN14"),
            ("0210123401234", "GTIN14"),
            ("9210123401234", "GTIN14"),
            ("0000000123456", "GTIN14"),
            ("0123456", "EAN8"),
            ("2123456", "EAN8"),
            ("000000123456", "EAN13"),
            ("00000212345", "UPCA"),
        ],
    )
    def test_an_in_store_number_is_recognised(self, payload: str, form: str) -> None:
        barcode = parse(complete(payload))
        assert barcode.format == form
        assert barcode.in_store

    @pytest.mark.parametrize(
        "payload",
        [
            "019999999999",
            "030000000000",
            "039999999999",
            "050000000000",
            "002000000000",
            "004000000000",
            "199999999999",
            "300000000000",
            "460000000000",
            "978000000000",
            "03600029145",
            "02000029145",
            "30123401234",
            "1061414100041",
            "2061414100041",
            "2461414100041",
            "9638507",
            "4012345",
            "1234567",
        ],
    )
    def test_a_trade_number_is_not_an_in_store_number(self, payload: str) -> None:
        assert not parse(complete(payload)).in_store

    @given(st.text("0123456789", min_size=7, max_size=7))
    def test_an_ean_8_is_in_store_in_every_form_or_in_none(self, payload: str) -> None:
        digits = complete(payload)
        forms = {parse(digits.zfill(length)).in_store for length in FORMATS}
        assert forms == {digits[0] in "02"}
