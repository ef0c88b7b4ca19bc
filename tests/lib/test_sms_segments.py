"""Segments of SMS: sizes of both alphabets, and characters that are never divided."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.lib import sms_segments

BASIC = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCÄÖÑÜ§¿abcäöñüà"
EXTENDED = "\f^{}\\[~]|€"


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("", 1),
        ("x" * 160, 1),
        ("x" * 161, 2),
        ("x" * 306, 2),
        ("x" * 307, 3),
        ("x" * 459, 3),
        ("x" * 460, 4),
        *(pair for mark in EXTENDED for pair in [(mark + "x" * 158, 1), (mark + "x" * 159, 2)]),
        ("Á" * 70, 1),
        ("Á" * 71, 2),
        ("Á" * 134, 2),
        ("Á" * 135, 3),
        ("😜" + "2" * 68, 1),
        ("😜" + "2" * 69, 2),
        ("😜" + "2" * 132, 2),
        ("😜" + "2" * 133, 3),
        ("🇮🇹" + "2" * 66, 1),
        ("🇮🇹" + "2" * 67, 2),
        # In UCS-2 the marks of the extension table take one unit.
        ("😀" + "]" * 68, 1),
        ("😀" + "]" * 69, 2),
        # Combining marks are in no GSM-7 alphabet. Decomposed letters take more units.
        ("e\u0301" * 35, 1),
        ("e\u0301" * 36, 2),
        # No break divides an escape from its character: 152 and 2 begin a second segment.
        ("x" * 152 + "€" + "x" * 151, 2),
        ("x" * 152 + "€" + "x" * 152, 3),
        ("ж" * 66 + "😀" + "ж" * 65, 2),
        ("ж" * 66 + "😀" + "ж" * 66, 3),
        # Signs that look like GSM-7, and make a text four times as dear.
        ("x" * 100 + "`", 2),
        ("x" * 100 + "’", 2),
        ("x" * 100 + "\u00a0", 2),
        ("x" * 100 + "ç", 2),
        ("\r\n" * 80, 1),
        ("\r\n" * 81, 2),
    ],
)
def test_segments_of_a_text(text: str, segments: int) -> None:
    assert sms_segments.count(text) == segments


@given(st.text(alphabet=BASIC))
def test_a_text_of_the_basic_alphabet_has_160_or_153_characters_in_a_segment(text: str) -> None:
    assert sms_segments.is_gsm_7(text)
    expected = 1 if len(text) <= 160 else math.ceil(len(text) / 153)
    assert sms_segments.count(text) == expected


@given(st.text(alphabet=st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])))
def test_a_text_without_surrogates_is_counted_by_its_length_or_is_gsm_7(text: str) -> None:
    if not sms_segments.is_gsm_7(text):
        expected = 1 if len(text) <= 70 else math.ceil(len(text) / 67)
        assert sms_segments.count(text) == expected


@given(st.text(), st.text())
def test_a_longer_text_has_no_fewer_segments(text: str, more: str) -> None:
    assert sms_segments.count(text) <= sms_segments.count(text + more)


@given(st.text())
def test_the_segments_hold_the_units_of_the_text(text: str) -> None:
    count = sms_segments.count(text)
    if sms_segments.is_gsm_7(text):
        units = sum(2 if character in EXTENDED else 1 for character in text)
        alone, joined = 160, 153
    else:
        units = len(text.encode("utf-16-le", "surrogatepass")) // 2
        alone, joined = 70, 67
    if count == 1:
        assert units <= alone
    else:
        # A segment that would divide a character ends one unit before.
        assert alone < units <= count * joined
        assert units > (count - 1) * (joined - 1)
