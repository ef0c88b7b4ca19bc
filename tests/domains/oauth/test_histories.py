"""Random histories of one connection, compared with a model that forgets nothing."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core import clock
from chalicelib.lib import tokens
from tests.conftest import Owner, Time, as_operator
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
REUSE, ACCESS, REFRESH, MOST = 120, HOUR, 60 * DAY, 10


@dataclass
class Issued:
    """A pair of tokens in the model. ``dropped`` ones are older than ten unused pairs."""

    app: ConnectedApp
    at: int
    replaced: int | None = None
    dropped: bool = False
    forgotten: bool = False

    def unused(self, now: int) -> bool:
        return self.replaced is None and not self.dropped and now < self.at + REFRESH

    def reusable(self, now: int) -> bool:
        return self.replaced is not None and not self.dropped and now < self.replaced + REUSE

    def callable(self, now: int) -> bool:
        return not self.dropped and not self.forgotten and now < self.at + ACCESS


@dataclass
class Model:
    """A connection: every pair that it issued, and whether it has ended."""

    pairs: list[Issued] = field(default_factory=list)
    ended: bool = False

    def accepts(self, pair: Issued, now: int) -> bool:
        """Whether a refresh is answered. A replay ends the connection."""
        if self.ended:
            return False
        unused = [each for each in self.pairs if each.unused(now)]
        if pair.unused(now):
            return sum(each.reusable(now) for each in self.pairs) < MOST
        if pair.reusable(now):
            return len(unused) < MOST or now >= unused[0].at + REUSE
        is_only_expired = pair.replaced is None and not pair.dropped and not pair.forgotten
        self.ended = not is_only_expired
        return False

    def refresh(self, pair: Issued, made: ConnectedApp, now: int) -> None:
        """Note the answer to a refresh."""
        unused = [each for each in self.pairs if each.unused(now)]
        if pair.unused(now):
            pair.replaced = now
        elif len(unused) == MOST:
            unused[0].dropped = True
        self.pairs.append(Issued(made, now))
        needed = [each for each in self.pairs if each.unused(now) or each.reusable(now)]
        others = [e for e in self.pairs if e not in needed and e.callable(now)]
        room = 2 * MOST - len(needed)
        for each in self.pairs:
            if each not in needed and each not in others[max(0, len(others) - room) :]:
                each.forgotten = True


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
    model = Model([Issued(first, now())])
    for step in [*steps, ("end", ending), *last]:
        take(step, model, time)
    assert [works(each.app.access) for each in model.pairs] == [
        not model.ended and each.callable(now()) for each in model.pairs
    ]
    as_operator("end_connection", id=first.id)
    assert not any(works(each.app.access) for each in model.pairs)


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
        pair = model.pairs[value % len(model.pairs)]
        assert works(pair.app.access) is (not model.ended and pair.callable(now()))
    else:
        refresh(model.pairs[value % len(model.pairs)], model)


def refresh(pair: Issued, model: Model) -> None:
    """Refresh a pair. The model decides whether the refresh must be refused."""
    if model.accepts(pair, now()):
        model.refresh(pair, pair.app.refreshed(), now())
    else:
        assert pair.app.refresh_refusal() == "invalid_grant"


def end(how: str, model: Model) -> None:
    """End the connection in one of several ways. The empty one leaves it as it is."""
    app = model.pairs[-1].app
    if how == "exchange":
        assert refusal("exchange_code", **exchange_arguments(app.code)) == "invalid_grant"
    elif how == "disconnect":
        as_operator("end_connection", id=app.id)
    elif how:
        call("revoke_token", token=getattr(app, how.split()[1]), clientId=CLIENT_ID)
    model.ended = model.ended or bool(how)
