"""Runs of mutants: their outcomes, and their section of the page."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from infra.proof import mutations
from infra.proof.mutations import Suite
from infra.proof.parts import ROOT

BARCODES = Suite(("chalicelib/lib/barcodes.py",), ("tests/lib/test_barcodes.py",))
SCOPES = Suite(("chalicelib/core/scopes.py",), ("tests/core/test_areas.py",))


@pytest.mark.slow
def test_tests_find_the_mutants_of_what_they_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explained = mutations.mutants_of(ROOT, *BARCODES.modules)[0].name
    monkeypatch.setattr(mutations, "equivalents", lambda: {explained: "A reason."})
    outcomes = mutations._outcomes(tmp_path, "barcodes", BARCODES, time.time() + 60)
    fates = {each["outcome"] for each in outcomes}
    assert "killed" in fates
    assert fates <= {"killed", "timed out", "equivalent", "survived", "not reached", "skipped"}
    (alone,) = [each for each in outcomes if each["outcome"] == "equivalent"]
    assert (mutations._key(alone), alone["runs"]) == (explained, 0)
    killed = next(each for each in outcomes if each["outcome"] == "killed")
    assert killed["killer"].startswith("tests/lib/test_barcodes.py::")
    recorded = json.loads((tmp_path / "barcodes-map.json").read_text())["tests"]
    assert killed["killer"] in recorded
    assert recorded[killed["killer"]]["statements"]


def outcome(change: str, fate: str) -> dict[str, Any]:
    (module,) = SCOPES.modules
    return {"module": module, "function": "f", "change": change, "outcome": fate, "runs": 2}


def test_the_page_lists_survivors_and_gives_the_reason_of_equivalent_mutants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (module,) = SCOPES.modules
    monkeypatch.setattr(
        mutations, "equivalents", lambda: {(module, "f", "same"): "It is the same."}
    )
    fates = {"killed": "killed", "same": "equivalent", "lost": "survived", "dead": "not reached"}
    figures = mutations._figures([SCOPES], [outcome(*each) for each in fates.items()])
    counts = figures["modules"][module]
    made = len(mutations.mutants_of(ROOT, module))
    assert counts == {
        "made": made,
        "tried": 4,
        "killed": 1,
        "equivalent": 1,
        "survived": 1,
        "not reached": 1,
    }
    page = mutations.section(json.loads(json.dumps(figures)))
    assert f"| {module} | {made} | 4 | 1 | 0 | 1 | 1 | 1 | 0 |" in page
    assert f"- `{module}` f: `same`. It is the same.\n" in page
    assert f"- `{module}` f: `lost`.\n" in page
    assert f"- `{module}` f\n" in page
