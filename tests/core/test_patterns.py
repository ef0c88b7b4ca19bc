"""Regular expressions that are compiled by their first use."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import chalicelib
from chalicelib.core import text as core_text
from chalicelib.core.text import lazy_pattern

PACKAGE = Path(chalicelib.__file__).parent


def test_lazy_pattern_matches_like_a_compiled_pattern() -> None:
    lazy, compiled = lazy_pattern("(B)r", re.IGNORECASE), re.compile("(B)r", re.IGNORECASE)
    for text in ("bread", "a BREAD", "nothing"):
        assert str(lazy.search(text)) == str(compiled.search(text))
        assert lazy.sub(r"<\1>", text) == compiled.sub(r"<\1>", text)
    assert (lazy.pattern, lazy.flags, lazy.groups) == ("(B)r", compiled.flags, 1)
    assert lazy_pattern(rb"\d").fullmatch(b"1")


def test_invalid_lazy_pattern_is_refused_at_its_first_use() -> None:
    lazy = lazy_pattern("(")
    with pytest.raises(re.error):
        lazy.search("")


def test_lazy_pattern_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    compile_now = re.compile
    monkeypatch.setattr(re, "compile", lambda *args: compiled.append(args) or compile_now(*args))
    lazy = lazy_pattern("a")
    assert not compiled
    assert lazy.match("a")
    assert lazy.match("a")
    assert lazy.fullmatch("a")
    assert len(compiled) == 1


def test_every_lazy_pattern_of_the_project_is_valid() -> None:
    """Each pattern is a constant of a module, or part of a tuple that is one."""
    pattern_count = 0
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text().replace("def lazy_pattern(", "")
        if "lazy_pattern(" not in text:
            continue
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        values = _flat(vars(import_module(name)).values())
        valid = [value for value in values if isinstance(value, core_text._LazyPattern)]
        assert all(value.pattern for value in valid), name
        assert len(valid) >= text.count("lazy_pattern("), name
        pattern_count += len(valid)
    assert pattern_count > 50


def _flat(values: object) -> list[object]:
    flat: list[object] = []
    for value in values:  # type: ignore[attr-defined]
        flat += _flat(value) if isinstance(value, tuple) and type(value) is tuple else [value]
    return flat
