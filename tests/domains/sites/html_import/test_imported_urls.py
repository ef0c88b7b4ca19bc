"""URLs in imported HTML become absolute, as in browsers."""

import pytest

from chalicelib.domains.sites.rules.html_import import (
    read,
)
from tests.domains.sites.html_import.helpers import page


class TestUrls:
    @pytest.mark.parametrize(
        ("url", "absolute"),
        [
            ("a.png", "https://example.com/shop/a.png"),
            ("/a.png", "https://example.com/a.png"),
            ("../a.png", "https://example.com/a.png"),
            ("../../../a.png", "https://example.com/a.png"),
            ("./b/../a.png", "https://example.com/shop/a.png"),
            ("//cdn.example/a.png", "https://cdn.example/a.png"),
            ("?page=2", "https://example.com/shop/page.html?page=2"),
            ("  a.png\n", "https://example.com/shop/a.png"),
            ("a\n b.png", "https://example.com/shop/a%20b.png"),
            ("a b.png", "https://example.com/shop/a%20b.png"),
            ("a%20b.png", "https://example.com/shop/a%20b.png"),
            ("хлеб.png?цена=1", "/%D1%85%D0%BB%D0%B5%D0%B1.png?%D1%86%D0%B5%D0%BD%D0%B0=1"),
            ("\\img\\a.png", "https://example.com/img/a.png"),
            ("a.png?x=1&amp;y=2#z", "https://example.com/shop/a.png?x=1&amp;y=2#z"),
        ],
    )
    def test_relative_urls_are_made_absolute_as_browsers_do(self, url: str, absolute: str) -> None:
        html = page(f'<a href="{url}">').html
        assert html.startswith('<a href="http')
        assert html.endswith(f'{absolute}">')

    @pytest.mark.parametrize(
        "address",
        [
            "",
            "#place",
            "data:image/gif;base64,R0lGOD",
            "javascript:go('a b')",
            "JavaScript:void(0)",
            "mailto:a@example.com",
            "tel:+74951234567",
            "tg://resolve?domain=x",
            "about:blank",
            "http://[bad",
            "//[bad",
            "http:///a",
            "https:a.png",
            "HTTPS://Example.com/A b?c=д",
        ],
    )
    def test_absolute_urls_and_anchors_are_unchanged(self, address: str) -> None:
        source = f"<a  HREF='{address}' >x</a><img SRC='{address}' >"
        assert page(source).html == source

    @pytest.mark.parametrize(
        "source",
        [
            "<a href=@>",
            "<AREA HREF='@'>",
            "<img alt=x src='@'>",
            "<IMG SRC=@>",
            "<script src=@></script>",
            "<link rel=stylesheet href=@>",
            "<form action=@>",
            "<button formaction=@>",
            "<video poster=@ src=@>",
            "<source src=@>",
            "<source srcset='@ 2x'>",
            "<iframe src=@></iframe>",
            "<object data=@>",
            "<embed src=@>",
            "<blockquote cite=@>",
            "<svg><use href=@ /><image xlink:href=@ /></svg>",
            "<td background=@>",
            "<img data-src=@ data-original=@>",
            "<div data-content-cover-bg=@>",
            "<div style='background:url(@)'>",
            "<div style=\"background:url('@')\">",
            "<style>@import '@';</style>",
            "<style>@import url(@);</style>",
            "<style>a{background:URL( @ )}</style>",
            "<meta property=og:image content=@>",
            "<link rel=preload as=image imagesrcset='@ 2x'>",
            "<noscript><img src=@></noscript>",
            "<iframe srcdoc='<img src=@>'></iframe>",
            "<noscript><img src=@></noscript><noscript><img src=@></noscript>",
            "<template><img src=@></template>",
            "<div data-bg='url(@)'>",
            "<div data-bg=\"url('@'), linear-gradient(rgba(0,0,0,.5), #000)\">",
            "<div data-bg-multi='url(@),url(@)' data-bg-hidpi=@ data-background-image=@>",
            "<img data-lazy-srcset='@ 300w, @ 2x' data-lazy-src=@>",
            "<div data-bgset='@ [--small] | @ [(max-width: 40em) and (a,b)] | @ 2x, @ 3x'>",
            "<style>a{background:image-set('@' 1x, \"@\" type('image/png') 2x)}</style>",
            "<div style='background:-webkit-image-set(url(@) 1x, \"@\" 2x), url(@)'>",
            "<style>a:not(.b){b:c} d{background:image-set(url('@') 1x)} e{content:'f.png'}</style>",
            "<p><b><a href=@",
        ],
    )
    def test_urls_are_found_in_every_attribute_and_style(self, source: str) -> None:
        relative = source.replace("@", "q.png").replace("q.pngimport", "@import")
        html = page(relative).html
        if source.endswith("@"):
            assert html == relative  # Browsers drop a tag that never ends.
        else:
            assert html.count("https://example.com/shop/q.png") == source.count("@") - source.count(
                "@import"
            )

    @pytest.mark.parametrize(
        "source",
        [
            "<!doctype html>\n<HTML Lang=ru><P CLASS = x>A &amp; B&nbsp;&copy 2<br/>\0 <b><i></b>",
            '<script>var a = \'<img src="a.png">\' && "</a href=b>"</script>',
            "<!-- <img src=a.png> --><textarea><img src=a.png></textarea><xmp><img src=a></xmp>",
            "<style>/* url(a.png) */ b{content:'url(a.png)'} c{fill:url(#d)}</style>",
            "<svg viewBox='0 0 1 1'><clipPath/></svg><math><mi>x</mi></math>",
            "<META Charset=UTF-8><meta name=keywords content=a.png>",
            "<img data-src=lazy><base target=_top>",
            "<div data-original=12.5 data-src=0.5s data-bg='rgba(0,0,0,.5)' data-poster=16/9>",
            "<div data-background='rgb(0 0 0 / 50%)' data-lazy='1.5, 2.5' data-thumb=01/02/2027>",
            "<div data-src='{&quot;a&quot;:&quot;b/c.png&quot;}' data-bg='[&quot;a/b.png&quot;]'>",
            "<img data-srcset=' [&quot;a/b.png 2x&quot;]' data-bgset='&quot;a/b.png&quot;'>",
            "<img data-src='{{ x }}/a.png' data-srcset='{{ a.png }} 2x' src='{{ x.png }}'>",
            "<a href='<%= a/b %>'><img src='${a/b}.png' data-src='a_{width}x.jpg'>",
            "<div data-bg='linear-gradient(#fff 1.5%, #000)' data-image='Photo by A. Smith.'>",
            "<div data-bg='var(--hero.jpg)' data-bgset='{&quot;a.png&quot;: 1}' data-bg='url()'>",
            "<style>a{content:'image-set(' 'a.png'} b{c:image-set(} d{content:'a.png'}</style>",
            "<style>a{b:image-set(type('image/png'))} c{d:e(image-set('')) 'f.png'}</style>",
            "<?php echo 1 ?><![CDATA[ x ]]></ x><a<b c",
            "<table><div><tr><td>x</table>",
            "<iframe srcdoc='<iframe srcdoc=&quot;<img src=a.png>&quot;>'></iframe>",
            "plain text",
            "",
        ],
    )
    def test_other_markup_is_unchanged(self, source: str) -> None:
        assert page(source).html == source

    def test_a_changed_tag_is_rewritten_with_the_same_meaning(self) -> None:
        source = "<IMG alt='a \"b\" &amp; c' hidden SRC=a.png SRC=b.png =x=1 />"
        assert page(source).html == (
            '<img alt="a &quot;b&quot; &amp; c" hidden="" src="https://example.com/shop/a.png"'
            ' =x="1" />'
        )

    def test_a_url_in_a_style_sheet_is_escaped(self) -> None:
        source = "<style>a{b:url('a\\'\\20 b(1).png')}</style>"
        imported = page(source)
        assert imported.html == '<style>a{b:url("https://example.com/shop/a\'%20b(1).png")}</style>'
        out = imported.replaced({imported.images[0]: 'x"</style><script>\\'})
        assert "</style><script>" not in out

    def test_urls_in_a_srcset_may_contain_commas(self) -> None:
        source = (
            "<img srcset='a,b.png, data:image/png;base64,AA== 2x,c.png 3x , d.png (a,b) 4x,,e'>"
        )
        imported = page(source)
        assert imported.html == (
            '<img srcset="https://example.com/shop/a,b.png, data:image/png;base64,AA== 2x,'
            "https://example.com/shop/c.png 3x , https://example.com/shop/d.png (a,b) 4x,,"
            'https://example.com/shop/e">'
        )
        assert [image.rpartition("/")[2] for image in imported.images] == [
            "a,b.png",
            "png;base64,AA==",
            "c.png",
            "d.png",
            "e",
        ]

    def test_sets_of_a_background_are_divided_by_bars(self) -> None:
        imported = page("<p data-bgset='a|b.png [--small] | c.png [(a,b)]| d.png 2x'>")
        assert imported.html == (
            '<p data-bgset="https://example.com/shop/a|b.png [--small] | '
            'https://example.com/shop/c.png [(a,b)]| https://example.com/shop/d.png 2x">'
        )

    def test_urls_are_resolved_against_the_pages_base_which_is_removed(self) -> None:
        source = (
            "</base href=no><base id=a><a href=a><base id=b href='/x/'><base href=/y/>"
            "<img src=b.png>"
        )
        imported = page(source)
        assert imported.html == (
            '</base href=no><base id=a><a href="https://example.com/x/a"><base id="b">'
            '<img src="https://example.com/x/b.png">'
        )
        assert read("<base href=https://a.example/b/><a href=c>").html == (
            '<a href="https://a.example/b/c">'
        )

    @pytest.mark.parametrize(
        ("base", "link", "absolute"),
        [
            ("/a/b/../c/./d", "x", "/a/c/x"),
            ("/a/b/../c/./d", "?q", "/a/c/d?q"),
            ("/a/..", "x", "/x"),
            ("/a;b/c:d", "?q", "/a;b/c:d?q"),
            ("/../a/b/", "../x", "/a/x"),
            ("?q", "x", "/shop/x"),
            ("/a/" + "b/" * 1500, "../" * 1500 + "x", "/a/x"),
            ("/" + "a/" * 2038, "../" * 2037 + "x", "/a/x"),
            ("/" + "a/../" * 1000 + "a/", "x", "/a/x"),
        ],
    )
    def test_a_base_in_any_form_is_used(self, base: str, link: str, absolute: str) -> None:
        imported = page(f"<base href='{base}'><a href='{link}'>")
        assert imported.html == f'<a href="https://example.com{absolute}">'

    def test_malformed_urls_are_not_counted_as_relative(self) -> None:
        assert page("<a href='//[bad'>").relative == 0

    def test_malformed_image_urls_are_ignored(self) -> None:
        assert page("<img src='http://[a.png'><img src='http:///a.png'>").images == ()

    @pytest.mark.parametrize(
        "base",
        ["javascript:1", "data:,x", "http://[", "mailto:a@b.c"]
        + [
            f"{start}/{'я' * length}/"
            for start in ("", "https://a.example")
            for length in (700, 5000)
        ]
        + ["/" + "a/" * 2038 + "b"],
    )
    def test_a_base_that_is_too_long_or_not_a_web_url_is_ignored(self, base: str) -> None:
        assert page(f"<base href='{base}'><a href=a>").html == (
            '<a href="https://example.com/shop/a">'
        )

    def test_relative_urls_are_kept_without_a_base(self) -> None:
        source = "<base href='sub/'><a href=a><img src=../b.png srcset='c.png 2x'><a href='#d'>"
        imported = read(source)
        assert (imported.html, imported.images, imported.relative) == (source, (), 3)

    def test_urls_without_a_scheme_get_https_without_a_base(self) -> None:
        imported = read("<img src=//cdn.example/a.png><a href='\\\\b.example\\c'><a href=///x>")
        assert imported.images == ("https://cdn.example/a.png",)
        assert '<a href="https://b.example/c">' in imported.html
        assert imported.html.endswith("<a href=///x>")
        assert imported.relative == 1

    @pytest.mark.parametrize(
        ("refresh", "absolute"),
        [
            ("5; url=next", "5; url=https://example.com/shop/next"),
            ("0;URL='/next'", "0;URL=https://example.com/next"),
            (' 1.5 , url = "a b" tail', " 1.5 , url = https://example.com/shop/a%20b"),
            ("0 /next", "0 https://example.com/next"),
            ("0;//b.example/", "0;https://b.example/"),
            ("0; url=o'brien", "0; url=https://example.com/shop/o'brien"),
            ("0; url=https://b.example", None),
            ("5", None),
            ("5;", None),
            ("5; url=", None),
            ("url=next", None),
            ("5next", None),
            ("", None),
        ],
    )
    def test_the_url_of_a_refresh_is_made_absolute(
        self, refresh: str, absolute: str | None
    ) -> None:
        quote = "'" if '"' in refresh else '"'
        source = f"<meta http-equiv=Refresh content={quote}{refresh}{quote}>"
        expected = (
            source if absolute is None else (f'<meta http-equiv="Refresh" content="{absolute}">')
        )
        assert page(source).html == expected
