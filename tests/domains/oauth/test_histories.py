"""Random histories of one connection, compared with a model that forgets nothing."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core import clock
from chalicelib.lib import tokens
from tests.conftest import Owner, Time, call_operator
from tests.factories.oauth import (
    CLIENT_ID,
    ConnectedApp,
    call,
    connect,
    exchange_arguments,
    forged,
    refusal,
    works,
)
from tests.support.effort import examples

HOUR, DAY = 3_600, 86_400
REUSE, ACCESS, REFRESH, LIFE, ROTATIONS, KEPT = 120, HOUR, 60 * DAY, 180 * DAY, 10, 20


@dataclass
class Issued:
    """A refresh token in the model, and its access tokens."""

    app: ConnectedApp
    at: int
    replaced: int | None = None
    successor: "Issued | None" = None

    def unused(self, now: int) -> bool:
        return self.replaced is None and now < self.at + REFRESH

    def reusable(self, now: int) -> bool:
        return self.replaced is not None and now < self.replaced + REUSE


@dataclass
class Access:
    """An access token in the model. ``pair`` is the pair of its first issue, if any."""

    token: str
    at: int
    pair: Issued | None
    forgotten: bool = False

    def callable(self, now: int) -> bool:
        return not self.forgotten and now < self.at + ACCESS


@dataclass
class Model:
    """A connection: all tokens that it issued, and whether it has ended."""

    began: int
    pairs: list[Issued] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    ended: bool = False

    def issue(self, app: ConnectedApp, now: int) -> Issued:
        """Note a new refresh token and its access token."""
        pair = Issued(app, now)
        self.pairs.append(pair)
        self.accesses.append(Access(app.access, now, pair))
        return pair

    def over(self, now: int) -> bool:
        return self.ended or now >= self.began + LIFE

    def accepts(self, pair: Issued, now: int) -> bool:
        """Whether a refresh succeeds. A replay ends the connection."""
        if self.over(now):
            return False
        if pair.unused(now):
            return sum(pair.reusable(now) for pair in self.pairs) < ROTATIONS
        if pair.reusable(now):
            return pair.successor is not None and pair.successor.unused(now)
        self.ended = pair.replaced is not None
        return False

    def refresh(self, pair: Issued, renewed: ConnectedApp, now: int) -> None:
        """Note the tokens of a refresh. A repeated refresh returns the same refresh token."""
        if pair.unused(now):
            pair.replaced, pair.successor = now, self.issue(renewed, now)
        else:
            assert pair.successor is not None
            assert renewed.refresh == pair.successor.app.refresh
            self.accesses.append(Access(renewed.access, now, None))
        rows = [access for access in self.accesses if not access.forgotten]
        needed = [e for e in rows if e.pair and (e.pair.unused(now) or e.pair.reusable(now))]
        others = [e for e in rows if e not in needed and e.callable(now)]
        for access in others[: max(0, len(needed) + len(others) - KEPT)]:
            access.forgotten = True


numbers = st.integers(0, 30)
recent = st.integers(0, 3).map(lambda n: -1 - n)
STEPS = st.one_of(
    st.tuples(st.just("refresh"), st.one_of(recent, numbers)),
    st.tuples(st.just("refresh"), recent),
    st.tuples(st.just("burst"), recent, st.integers(2, 12)),
    st.tuples(st.just("call"), numbers),
    st.tuples(st.just("forge"), numbers),
    st.tuples(st.just("wait"), st.sampled_from([1, 30, 119, 120, 121, 1_800, HOUR, DAY, 59 * DAY])),
)
ENDINGS = st.sampled_from(["", "exchange", "revoke access", "revoke refresh", "disconnect"])


@examples(150, 6)
@given(steps=st.lists(STEPS, max_size=30), ending=ENDINGS, last=st.lists(STEPS, max_size=4))
def test_random_histories_of_a_connection_match_the_model(
    owner: Owner, time: Time, steps: list[Any], ending: str, last: list[Any]
) -> None:
    first = connect(owner.workspace)
    model = Model(now())
    model.issue(first, now())
    for step in [*steps, ("end", ending), *last]:
        take(step, model, time)
    assert [works(access.token) for access in model.accesses] == [
        not model.over(now()) and access.callable(now()) for access in model.accesses
    ]
    call_operator("end_connection", id=first.id)
    assert not any(works(access.token) for access in model.accesses)


def now() -> int:
    return int(clock.now().timestamp())


def take(step: Any, model: Model, time: Time) -> None:
    """Take a step of a history, and compare its outcome with the model's."""
    name, value, *more = step
    if name == "burst":
        pair = model.pairs[value % len(model.pairs)]
        for _ in range(more[0]):
            refresh(pair, model)
    elif name == "end":
        end(value, model)
    elif name == "wait":
        time.pass_by(seconds=value)
    elif name == "forge":
        app = model.pairs[0].app
        fake = ConnectedApp(app.id, app.code, app.access, forged(app.id, tokens.REFRESH_PREFIX))
        assert fake.refresh_refusal() == "invalid_grant"
        assert not works(forged(app.id, tokens.ACCESS_PREFIX))
    elif name == "call":
        access = model.accesses[value % len(model.accesses)]
        assert works(access.token) is (not model.over(now()) and access.callable(now()))
    else:
        refresh(model.pairs[value % len(model.pairs)], model)


def refresh(pair: Issued, model: Model) -> None:
    """Refresh a pair. The model decides whether the refresh must be refused."""
    if model.accepts(pair, now()):
        model.refresh(pair, pair.app.refreshed(), now())
    else:
        assert pair.app.refresh_refusal() == "invalid_grant"


def end(how: str, model: Model) -> None:
    """End the connection in one of several ways. The empty way changes nothing."""
    app = model.pairs[-1].app
    if how == "exchange":
        assert refusal("exchange_code", **exchange_arguments(app.code)) == "invalid_grant"
    elif how == "disconnect":
        call_operator("end_connection", id=app.id)
    elif how:
        call("revoke_token", token=getattr(app, how.split()[1]), clientId=CLIENT_ID)
    model.ended = model.ended or bool(how)
