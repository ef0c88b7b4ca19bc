"""How texts compare, and which of them can be shown."""

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from chalicelib.core.schema import MAX_TITLE, Title
from chalicelib.core.text import one_line

titles = TypeAdapter(Title)
odd = st.sampled_from(
    [*" \t\n\x00\x1f\x7f\x85\x9f", *"\u200b\u200d\u202e\u2066\u2028\u3164\ufe0f", "👩‍🚀"]
)


@given(st.lists(odd | st.text(max_size=3), max_size=300).map("".join))
def test_one_line_of_any_text_is_a_title_or_nothing(text: str) -> None:
    line = one_line(text, MAX_TITLE)
    assert line == "" or titles.validate_python(line) == line


@given(st.text(max_size=MAX_TITLE))
def test_one_line_leaves_a_title_as_it_is(text: str) -> None:
    try:
        title = titles.validate_python(text)
    except ValueError:
        return
    assert one_line(title, MAX_TITLE) == " ".join(title.split())
