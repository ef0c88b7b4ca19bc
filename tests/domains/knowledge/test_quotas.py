"""The quota of a bot's sources."""

import pytest

from chalicelib.domains.knowledge.rules import quotas
from chalicelib.domains.knowledge.rules.problems import ProblemCode


class Source:
    size = 10.0


@pytest.mark.parametrize(
    ("text", "fits"), [("x" * 20, True), ("x" * 21, False), ("ж" * 10, True), ("ж" * 11, False)]
)
def test_quota_counts_bytes_of_all_sources(text: str, *, fits: bool) -> None:
    used = quotas.MAX_BOT_BYTES - 20
    problem = quotas.problem(used, text)
    assert (problem is None) == fits
    if problem:
        facts = {"bytes": len(text.encode()), "used": used, "maximum": quotas.MAX_BOT_BYTES}
        assert (problem.code, problem.facts) == (ProblemCode.TOO_MUCH_TEXT, facts)
        assert quotas.used([Source(), Source()]) == 20
