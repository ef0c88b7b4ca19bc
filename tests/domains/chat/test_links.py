"""Tests of which links in a bot's messages keep their addresses, and how the others look."""

import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.domains.chat.rules import links
from chalicelib.domains.chat.rules.links import LinkFilter
from tests.support.linkable import linked_hosts
from tests.support.sweep import sweep

ALLOWED = {"good.com", "xn--80aswg.xn--p1ai", "127.0.0.1", "[::1]"}
GONE = "[link removed]"


def filter_links(text: str) -> str:
    return filter_pieces([text])


def filter_pieces(pieces: Sequence[str]) -> str:
    links_ = LinkFilter(ALLOWED.__contains__, GONE)
    return "".join(map(links_.add, pieces)) + links_.end()


KEPT = [
    "See https://good.com.",
    "See https://good.com/a?b=c&d=%20#e, or call +7 495 123-45-67.",
    "(https://good.com/a_(b)), «https://www.good.com»",
    "HTTPS://GOOD.com:8443/x and http://127.0.0.1:8000/s/shop and http://[::1]/x",
    "www.good.com/prices, //good.com/x",
    "[Prices](https://good.com/prices 'All of them') and ![logo](<https://good.com/a b.png>)",
    "[a](https://good.com/1)[b](https://good.com/2)|https://good.com|",
    "**https://good.com** <https://good.com/x> <a href='https://good.com/'>x</a>",
    "[сайт](https://сайт.рф/цены) https://xn--80aswg.xn--p1ai",
    "https://good.com/login?next=https://other.com/x",
    "[r]: https://good.com/x 'title'",
    "Write to ann@evil.com or [Ann](mailto:ann@evil.com), [call](tel:+74951234567).",
    "[below](#prices) [page](/prices) [note](see below) [x] (y) a[0] [1]: one",
    "12:30, 50/60, and/or, https and www., https://, // x, a//b, C:\\dir, <b>bold</b>, a < b: c",
    "evil.com is a host without a scheme.",
    "He said: http: is old! [",
    "See https://good.com/login?next=https://other.com/x",
    "[a](//good.com/x) [b](www.good.com) https://\uff47ood.com <mailto:ann@good.com>",
    "[x] data:y) z, [note](time:12 hours), [note](time:a\\ b), a <bc:d e",
    f"<bc:{'x' * (links.MAX_LINK - 3)} end",
    "many words " * 300 + "https://good.com and a <bc:d e",
    f"[r]:https://good.com https://good.com/{'x' * (links.MAX_LINK - 17)} end",
    "the end [x]",
    "the end [x](/a",
    "the end: http",
    "the end <bc:d",
]


@sweep("text", KEPT)
def test_text_and_links_to_allowed_hosts_are_not_changed(text: str) -> None:
    assert filter_links(text) == text


REMOVED = [
    ("[here](http://evil.com)", "here"),
    ("[here](http://evil.com 'Click'), please", "here, please"),
    ("![pixel](https://evil.com/?q=(a)b)!", "pixel!"),
    ("[![a](https://evil.com/a.png)](https://good.com)", "[a](https://good.com)"),
    ("[https://evil.com](https://evil.com)", GONE),
    ("See https://evil.com/x.", f"See {GONE}."),
    ("(HTTPS://EVIL.COM/x), then", f"({GONE}), then"),
    ("www.evil.com", GONE),
    ("https://good.com@evil.com/x", GONE),
    ("https://good.com:pw@evil.com", GONE),
    ("https://good.com\\@evil.com", GONE),
    ("https://good.com.evil.com", GONE),
    ("https://good.com。evil.com", GONE),
    ("https://good.com%2eevil.com", GONE),
    ("https://good.com!.evil.com", GONE),
    ("https://evil.good.com", GONE),
    ("https:/evil.com http:evil.com https:\\\\evil.com", f"{GONE} {GONE} {GONE}"),
    ("https://[2001:db8::1]:80/x", GONE),
    ("https://2130706433/ https://0x7f.1", f"{GONE} {GONE}"),
    ("https://еvil.com https://xn--vil-3cd.com", f"{GONE} {GONE}"),
    ("[x](//evil.com) [y](\\/\\/evil.com) [z](www.evil.com)", "x y z"),
    ("[x](https&#58;//evil.com) [y](<https://evil.com/a b>)", "x y"),
    ("[x](\u00a0https://evil.com)", "x"),
    ("[x](javascript:alert(1)) [y](data:text/html,hi) [z](ftp://evil.com)", "x y z"),
    ("<javascript:alert(1)> <data:text/html,hi>", f"<{GONE}> <{GONE}>"),
    ("[x](javascript:alert(1)<b) [y](data:text/html,<b>hi</b>)", "x y"),
    ("<https://evil.com>", f"<{GONE}>"),
    ("[r]: https://evil.com\n[s]: <//evil.com/x> (t)", f"[r]: {GONE}\n[s]: {GONE}  (t)"),
    ("[https://good.com](http://evil.com).evil.com", GONE),
    ("https://good.com[x](http://evil.com) w[ww.evil.com](http://evil.com)", f"{GONE} {GONE}"),
    ("[a][(javascript:alert(1))](http://evil.com)", "[a] (javascript:alert(1))"),
    ("[[a]](http://evil.com)(javascript:alert(1))", "[a] (javascript:alert(1))"),
    ("www.good.com/https://evil.com", f"www.good.com/{GONE}"),
    ("https:good.com/https://evil.com", f"https:good.com/{GONE}"),
    ("https://good.com:./https://evil.com", f"https://good.com:./{GONE}"),
    ("ftp://evil.com", f"ftp{GONE}"),
    ("h\u200bttps://evil.com", f"h\u200bttps{GONE}"),
    ("<img src=//evil.com/x>", f"<img src={GONE}>"),
    ("https://good.com/a)[x](https://evil.com)", "https://good.com/a)x"),
    ("https://good.com/'https://evil.com", f"https://good.com/'{GONE}"),
    ("https://evil.com" + "x" * 3_000 + " end", f"{GONE} end"),
    ("See [x](data:" + "x" * 3_000 + ") end", "See x end"),
    ("[r]: <//evil.com/x>y", f"[r]: {GONE} y"),
    ("_https://good.com/?a=https://evil.com", f"_https://good.com/?a={GONE}"),
    ("[x](java&Tab;script:alert(1))", "x"),
    ("[x](data:a\\)) a](data:x) b", "x a b"),
    ("[x](<data:a) b\nc", "x b\nc"),
    ("a [](https://evil.com) b", "a  b"),
    ("https://good.com|@evil.com www.evil", f"{GONE}|@evil.com {GONE}"),
    ("(https://evil.com/a_(b), https://evil.com/a)", f"({GONE}, {GONE})"),
]


@sweep(("text", "expected"), REMOVED)
def test_links_to_other_hosts_lose_their_addresses(text: str, expected: str) -> None:
    assert filter_links(text) == expected


@sweep("text", [*KEPT, *(text for text, _ in REMOVED)])
def test_an_answer_split_at_any_character_is_filtered_the_same(text: str) -> None:
    filtered_text = filter_links(text)
    assert filter_pieces(text) == filtered_text
    for at in range(0, len(text), 1 + len(text) // 200):
        assert filter_pieces([text[:at], text[at:]]) == filtered_text


def test_text_that_cannot_become_a_link_is_sent_immediately() -> None:
    links_ = LinkFilter(ALLOWED.__contains__, GONE)
    for piece in (
        "Bread ",
        "costs 120 rubles",
        ". We ope",
        "n at ei",
        "ght",
        ", Часы",
        " a/b.\n\n",
        "[x] see https://good.com/x and",
        "[x](see this) [1]: see that a <bc:d e",
    ):
        assert links_.add(piece) == piece


@pytest.mark.parametrize(
    ("begin", "at_once", "then"),
    [
        ("https://good.com/", "", GONE),
        ("<data:", "", f"<{GONE}"),
        ("[x](data:", "", "x"),
        ("[r]: data:", "[r", f"]: {GONE}"),
        ("[r]: /", "[r", f"]: {GONE}"),
    ],
)
def test_no_more_than_the_longest_link_is_held_back(begin: str, at_once: str, then: str) -> None:
    links_ = LinkFilter(ALLOWED.__contains__, GONE)
    assert links_.add(begin + "x" * 1_900) == at_once
    assert links_.add("x" * 200) == then
    assert links_.add("xxx") == ""
    assert links_.add(" and more") == " and more"


def test_no_more_than_the_longest_label_is_held_back() -> None:
    links_ = LinkFilter(ALLOWED.__contains__, GONE)
    assert links_.add("[" + "x" * (links.MAX_LABEL - 1)) == ""
    assert links_.add("x") == "[" + "x" * links.MAX_LABEL


@pytest.mark.parametrize(("shorter_by", "bracket"), [(1, ""), (0, "["), (-1, "[")])
def test_the_brackets_of_the_longest_label_do_not_depend_on_the_pieces(
    shorter_by: int, bracket: str
) -> None:
    label = "x" * (links.MAX_LABEL - shorter_by)
    text = f"[{label}](https://evil.com)"
    assert filter_links(text) == filter_pieces(text) == bracket + label


BEGINNINGS = ["[", "![", "[[]", "](<", "](", "](a ('", "]:", "<a:", "//", "https:", "[a](b "]


@sweep("begin", BEGINNINGS)
def test_a_possible_link_is_not_scanned_again_with_each_piece(
    begin: str,
) -> None:
    text = begin * (6_000 // len(begin))
    lines = 0

    def count(_frame: object, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    tracer = sys.gettrace()
    sys.settrace(count)
    try:
        filter_pieces(list(text))
    finally:
        sys.settrace(tracer)
    assert lines < 1_000 * len(text)


def test_hosts_are_read_from_urls_and_names_but_not_from_emails() -> None:
    text = (
        "Our site is Bakery.example, see http://user@shop.example:80/x. Mail: a@mail.example. 1.50 "
        "_cafe.example_ //-"
    )
    impossible = f"https://{'я' * 64}.рф"
    assert links.hosts_in([text, "//cdn.example/x", "https://сайт.рф", impossible]) == {
        "bakery.example",
        "shop.example",
        "cdn.example",
        "cafe.example",
        "xn--80aswg.xn--p1ai",
    }


PARTS = [
    *"ab. \n/\\:@()[]<>!\"'*_,;?#%&=|`wh",
    *["http", "https:", "://", "www.", "good.com", "evil.com", "](", "]:", "![", "javascript:"],
    *["https://good.com", "https://evil.com", "[x](", "<https:", "//evil.com", "\u200b", "。"],
    *["\u00a0", "\x1f", "\ufeff", "mailto:", "data:", "&#58;", "[::1]", "я", "\t", "good.com/"],
]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=14).map("".join)


@given(TEXTS, st.data())
def test_the_result_does_not_depend_on_the_pieces(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert filter_pieces(pieces) == filter_links(text) == filter_pieces(text)


@given(TEXTS)
@example("[[link removed](https://evil.com)")
@example("https://evil.com(https://evil.com)")
def test_no_other_host_remains_in_the_widgets_links(text: str) -> None:
    assert linked_hosts(filter_links(text)) <= {*ALLOWED, "www.good.com"}


@given(TEXTS)
def test_filtering_a_filtered_answer_keeps_its_links(text: str) -> None:
    once = filter_links(text)
    assert linked_hosts(filter_links(once)) == linked_hosts(once)
