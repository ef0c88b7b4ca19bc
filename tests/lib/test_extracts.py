"""Extracting the content that bots use, without the markup."""

from chalicelib.lib.extracts import plain_text


def test_text_that_visitors_do_not_see_is_left_out() -> None:
    html = (
        "<p>Rye &amp; wheat</p><noscript>Switch on <b>scripts</b>.</noscript>"
        "<script>alert(1)</script><style>p{}</style><p>Open at 8</p><NOSCRIPT>Never closed"
    )
    assert plain_text(html).split() == ["Rye", "&", "wheat", "Open", "at", "8"]


def test_a_text_without_html_is_unchanged() -> None:
    assert plain_text("1 < 2 and  3 > 2") == "1 < 2 and  3 > 2"
