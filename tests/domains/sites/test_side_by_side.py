"""Comparison of two strings line by line."""

from chalicelib.domains.sites.rules.side_by_side import MAX_LINES, Row, compare

SAME = [str(number) for number in range(20)]


def text(*lines: str) -> str:
    return "\n".join(lines)


def test_changed_lines_are_paired_with_their_context() -> None:
    old_text = text(*SAME[:5], "old", "gone", *SAME[5:], "end")
    new_text = text(*SAME[:5], "new", *SAME[5:], "added", "end")
    assert compare(old_text, new_text=new_text) == [
        Row("2", "2", is_changed=False, skipped=2),
        *(Row(line, line, is_changed=False) for line in "34"),
        Row("old", "new", is_changed=True),
        Row("gone", None, is_changed=True),
        *(Row(line, line, is_changed=False) for line in "567"),
        Row("17", "17", is_changed=False, skipped=9),
        *(Row(line, line, is_changed=False) for line in ("18", "19")),
        Row(None, "added", is_changed=True),
        Row("end", "end", is_changed=False),
    ]


def test_equal_texts_have_no_rows() -> None:
    assert compare("a\nb", new_text="a\nb") == []


def test_texts_of_too_many_lines_are_not_compared() -> None:
    longest = "x\n" * MAX_LINES
    assert compare(longest, new_text="") is not None
    assert compare(f"{longest}x", new_text="") is None
    assert compare("", new_text=f"{longest}x") is None
