"""Lifetimes of access and refresh tokens, and the pairs that a refresh keeps."""

import pytest

from chalicelib.domains.identity.rules.token_pairs import (
    ACCESS_SECONDS,
    MAX_KEPT,
    MAX_ROTATIONS,
    REFRESH_SECONDS,
    REUSE_SECONDS,
    RejectedError,
    TokenPair,
    find_access,
    rotate,
)

NOW = 1_800_000_000
NEW = TokenPair("a-new", "r-new", NOW)


def pair(name: str, issued: int = 0, replaced: int | None = None) -> TokenPair:
    """Return a pair that was issued, and perhaps replaced, some seconds ago."""
    at = 0 if replaced is None else NOW - replaced
    return TokenPair(f"a-{name}", f"r-{name}", NOW - issued, at)


def rejected(pairs: list[TokenPair], refresh: str, *, is_family: bool = True) -> str:
    """Return whether a refresh is refused as a replay or only by itself."""
    with pytest.raises(RejectedError) as refusal:
        rotate(pairs, refresh, NEW, is_family=is_family)
    return "replay" if refusal.value.is_replay else "refused"


def test_an_access_token_is_valid_for_an_hour() -> None:
    last, ended = pair("x", ACCESS_SECONDS - 1), pair("y", ACCESS_SECONDS)
    assert find_access([last, ended], "a-x", NOW) == last
    assert find_access([last, ended], "a-y", NOW) is None
    assert find_access([last, ended], "r-x", NOW) is None


def test_a_refresh_token_is_valid_for_60_days() -> None:
    assert rotate([pair("x", REFRESH_SECONDS - 1)], "r-x", NEW, is_family=True)[-1] == NEW
    assert rejected([pair("x", REFRESH_SECONDS)], "r-x") == "refused"


def test_a_refresh_replaces_its_token_and_leaves_the_other_pairs() -> None:
    one, two = pair("x", 500), pair("y", 400)
    pairs = rotate([one, two], "r-x", NEW, is_family=True)
    assert pairs == [one._replace(replaced_at=NOW), two, NEW]


def test_recently_replaced_token_gets_its_successor() -> None:
    used, successor = pair("x", 500, replaced=REUSE_SECONDS - 1), pair("new", REUSE_SECONDS - 1)
    pairs = rotate([used, successor], "r-x", NEW._replace(access="a-2"), is_family=True)
    assert pairs == [used, successor, TokenPair("a-2", "", NOW, 1)]
    gone = successor._replace(replaced_at=NOW - 1)
    assert rejected([used, gone, pair("another")], "r-x") == "refused"


def test_token_replaced_two_minutes_ago_is_a_replay() -> None:
    used = pair("x", 500, replaced=REUSE_SECONDS)
    assert rejected([used], "r-x") == "replay"
    assert rejected([used], "r-x", is_family=False) == "refused"


def test_unknown_token_of_the_family_is_a_replay() -> None:
    assert rejected([pair("x")], "r-y") == "replay"
    assert rejected([pair("x")], "r-y", is_family=False) == "refused"


def test_at_most_ten_tokens_are_replaced_in_two_minutes() -> None:
    used = [pair(str(n), 500, replaced=REUSE_SECONDS - 1) for n in range(MAX_ROTATIONS)]
    live = pair("x", 500)
    assert rotate([*used[1:], live], "r-x", NEW, is_family=True)[-1] == NEW
    assert rejected([*used, live], "r-x") == "refused"
    earlier = pair("0", 500, replaced=REUSE_SECONDS)
    assert rotate([earlier, *used[1:], live], "r-x", NEW, is_family=True)[-1] == NEW


def test_a_pair_is_kept_while_one_of_its_tokens_may_be_used() -> None:
    live = pair("live", ACCESS_SECONDS)
    replaced_pair = pair("access", ACCESS_SECONDS - 1, replaced=REUSE_SECONDS)
    gone = pair("gone", ACCESS_SECONDS, replaced=REUSE_SECONDS)
    assert rotate([live, replaced_pair, gone, pair("x")], "r-x", NEW, is_family=True) == [
        live,
        replaced_pair,
        pair("x", replaced=0),
        NEW,
    ]


@pytest.mark.parametrize("surplus", [0, 1, 2])
def test_oldest_replaced_access_tokens_end_beyond_the_limit(
    surplus: int,
) -> None:
    live = pair("live", 800)
    replaced = [pair(str(n), 600 - n, replaced=REUSE_SECONDS + 9) for n in range(MAX_KEPT - 3)]
    more = [pair(f"more-{n}", 700 - n, replaced=REUSE_SECONDS + 9) for n in range(surplus)]
    pairs = rotate([live, *more, *replaced, pair("x")], "r-x", NEW, is_family=True)
    assert pairs == [live, *replaced, pair("x", replaced=0), NEW]
