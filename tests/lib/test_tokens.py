"""API tokens cannot be guessed, and are stored only as a hash."""

import hashlib
import math
import re
import string
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.lib.tokens import (
    OAUTH_PREFIXES,
    digest,
    family,
    generate,
    generate_for,
    owner_id,
    short_digest,
    successor,
    well_formed,
)

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
TOKEN = re.compile(r"svc_live_([0-9A-Za-z]+)([0-9A-Za-z]{6})")


def base62(text: str) -> int:
    number = 0
    for digit in text:
        number = number * 62 + BASE62.index(digit)
    return number


class TestGenerate:
    def test_a_token_is_the_prefix_a_secret_of_190_bits_and_a_checksum(self) -> None:
        match = TOKEN.fullmatch(generate())
        assert match
        assert len(match[1]) * math.log2(62) >= 190

    def test_a_token_ends_with_the_crc_32_of_the_rest_in_base62(self) -> None:
        for _ in range(50):
            token = generate()
            assert base62(token[-6:]) == crc32(token[:-6].encode())

    def test_tokens_never_repeat_and_use_the_whole_alphabet(self) -> None:
        tokens = [generate() for _ in range(500)]
        assert len(set(tokens)) == 500
        secrets = [token[len("svc_live_") : -6] for token in tokens]
        assert set("".join(secrets)) == set(BASE62)

    def test_a_bot_key_has_its_own_prefix(self) -> None:
        token = generate("svc_bot_")
        assert token.startswith("svc_bot_")
        assert well_formed(token, prefix="svc_bot_")
        assert not well_formed(token)


class TestWellFormed:
    def test_every_generated_token_is_well_formed(self) -> None:
        assert all(well_formed(generate()) for _ in range(200))

    @given(st.data())
    def test_a_token_with_one_wrong_character_is_refused(self, data: st.DataObject) -> None:
        token = generate()
        place = data.draw(st.integers(0, len(token) - 1))
        wrong = data.draw(st.characters(max_codepoint=0x2FF).filter(lambda c: c != token[place]))
        assert not well_formed(token[:place] + wrong + token[place + 1 :])

    @given(st.integers(0, 45))
    def test_a_token_with_two_swapped_characters_is_refused(self, place: int) -> None:
        token = generate()
        swapped = token[:place] + token[place + 1] + token[place] + token[place + 2 :]
        assert well_formed(swapped) == (swapped == token)

    @pytest.mark.parametrize(
        "change",
        [
            lambda token: token[:0],
            lambda token: token[:9],
            lambda token: token[:-1],
            lambda token: token + "0",
            lambda token: " " + token,
            lambda token: token + "\n",
            lambda token: token.upper(),
            lambda token: token.removeprefix("svc_"),
            lambda token: token.replace("svc_live_", "svc_test_"),
            lambda token: token[:-6] + "000000",
            lambda token: token[:9] + "ё" * 32 + token[-6:],
            lambda token: token[:-6] + "٠١٢٣٤٥",
        ],
    )
    def test_an_invalid_token_is_refused(self, change: object) -> None:
        assert callable(change)
        assert not well_formed(change(generate()))

    @given(st.text(max_size=60))
    def test_any_other_text_is_refused(self, text: str) -> None:
        assert not well_formed(text)
        assert not well_formed("svc_live_" + text)


class TestDigest:
    def test_a_digest_is_the_sha_256_in_hexadecimal(self) -> None:
        token = generate()
        assert digest(token) == hashlib.sha256(token.encode()).hexdigest()

    def test_a_digest_contains_no_part_of_the_token(self) -> None:
        token = generate()
        assert token[9:] not in digest(token)
        assert digest(token) != digest(generate())


OWNER = "01KDVDNA00J9A75TMKMV39J5WT"


class TestTokensOfConnections:
    @pytest.mark.parametrize("prefix", OAUTH_PREFIXES)
    def test_a_token_contains_its_owner_a_secret_and_a_checksum(self, prefix: str) -> None:
        token = generate_for(OWNER, prefix=prefix)
        assert re.fullmatch(f"{prefix}{OWNER}_[0-9A-Za-z]{{38}}", token)
        assert base62(token[-6:]) == crc32(token[:-6].encode())
        assert owner_id(token, prefix=prefix) == OWNER
        assert [
            owner_id(token, prefix=other_prefix)
            for other_prefix in OAUTH_PREFIXES
            if other_prefix != prefix
        ] == [None, None]

    @given(st.integers(0, 69), st.characters())
    def test_a_token_with_another_character_is_malformed(self, place: int, other: str) -> None:
        token = generate_for(OWNER, prefix="wsrt_")
        altered = token[:place] + other + token[place + 1 :]
        assert owner_id(altered, prefix="wsrt_") == (OWNER if altered == token else None)

    @given(st.text(max_size=80))
    def test_any_text_is_malformed(self, text: str) -> None:
        assert owner_id(text, prefix="wsat_") is None
        assert owner_id(f"wsat_{text}", prefix="wsat_") is None

    def test_successors_share_half_of_their_secret(self) -> None:
        first = generate_for(OWNER, prefix="wsrt_")
        second = successor(first, b"key")
        assert family(second) == family(first) == first[32:48]
        assert second[48:64] != first[48:64]
        assert family(generate_for(OWNER, prefix="wsrt_")) != family(first)

    @given(st.binary(min_size=1, max_size=64))
    def test_successor_is_a_well_formed_token_that_only_the_key_gives(self, key: bytes) -> None:
        token = generate_for(OWNER, prefix="wsrt_")
        following = successor(token, key)
        assert owner_id(following, prefix="wsrt_") == OWNER
        assert following == successor(token, key)
        assert following not in {successor(token, key + b"x"), successor(following, key), token}

    def test_the_short_digest_is_the_sha_256_in_base64url(self) -> None:
        """The example of PKCE (RFC 7636, Appendix B)."""
        verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        assert short_digest(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
