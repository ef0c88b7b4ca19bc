"""Slugs of titles in any script are valid labels of a host name."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.lib.slugs import MAX_LENGTH, RESERVED, candidates, first_free, slugify

SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")

any_title = st.one_of(st.text(max_size=80), st.text("a -'’ёЩ🍞饼", max_size=200))
any_slug = st.from_regex(SLUG, fullmatch=True)


class TestSlugify:
    @pytest.mark.parametrize(
        ("title", "slug"),
        [
            ("Bakery", "bakery"),
            ("Bakery & Sons, Ltd.", "bakery-sons-ltd"),
            ("  many   spaces  ", "many-spaces"),
            ("Пекарня «Ёлочка»", "pekarnya-elochka"),
            ("Київ і Львів", "kiiv-i-lviv"),
            ("Αθήνα", "athina"),
            ("北京烤鸭", "beijingkaoya"),
            ("Crème brûlée", "creme-brulee"),
            ("Straße", "strasse"),
            ("don't", "dont"),
            ("don’t", "dont"),
            ("снег1С-Битрикс", "sneg1s-bitriks"),
            ("№ 5", "no-5"),
            ("½ price", "1-2-price"),
            ("a_b.c/d", "a-b-c-d"),
            ("--a--b--", "a-b"),
            ("𝔹𝕠𝕝𝕕", "bold"),
        ],
    )
    def test_a_title_is_transliterated_to_lower_case_words(self, title: str, slug: str) -> None:
        assert slugify(title, fallback="site") == slug

    @pytest.mark.parametrize("title", ["", "   ", "!!!", "'’'", "…", "\u200b", "—–-"])
    def test_a_title_without_letters_and_digits_gets_the_fallback(self, title: str) -> None:
        assert slugify(title, fallback="page") == "page"

    def test_a_slug_is_cut_at_63_characters_without_a_final_hyphen(self) -> None:
        assert slugify("x" * 200, fallback="site") == "x" * MAX_LENGTH
        assert slugify("x" * 62 + " " + "y" * 10, fallback="site") == "x" * 62

    @given(any_title)
    def test_any_title_gives_a_valid_slug(self, title: str) -> None:
        assert SLUG.fullmatch(slugify(title, fallback="site"))

    @given(any_slug)
    def test_a_valid_slug_stays_unchanged(self, slug: str) -> None:
        assert slugify(slug, fallback="site") == re.sub("-+", "-", slug)


class TestCandidates:
    def test_candidates_count_from_two_and_end_with_a_random_one(self) -> None:
        first, second = list(candidates("bread")), list(candidates("bread"))
        assert first[:5] == ["bread", "bread-2", "bread-3", "bread-4", "bread-5"]
        assert all(re.fullmatch(r"bread-[a-z2-9]{6}", slug) for slug in first[5:])
        assert len(first) > 5
        assert set(first[5:]).isdisjoint(second[5:])

    @given(any_slug)
    def test_candidates_are_different_slugs_of_at_most_63_characters(self, slug: str) -> None:
        slugs = list(candidates(slug))
        assert slugs[0] == slug
        assert len(set(slugs)) == len(slugs)
        assert all(SLUG.fullmatch(option) for option in slugs)


class TestFirstFree:
    def test_the_first_candidate_that_is_not_taken_or_reserved_is_used(self) -> None:
        assert first_free(["a", "a-2", "a-3"], set(), reserved=RESERVED) == "a"
        assert first_free(["a", "a-2", "a-3"], {"a", "a-2"}, reserved=RESERVED) == "a-3"
        assert first_free(["admin", "admin-2"], set(), reserved=RESERVED) == "admin-2"
        assert (
            first_free(["admin", "admin-2", "admin-3"], {"admin-2"}, reserved=RESERVED) == "admin-3"
        )

    def test_the_platforms_own_names_are_reserved(self) -> None:
        assert {"api", "blog", "admin", "www"} <= RESERVED
        assert all(SLUG.fullmatch(slug) for slug in RESERVED)
