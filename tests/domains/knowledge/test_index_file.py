"""The file of an index, with hostile texts and questions."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.domains.knowledge.flows import index_file
from chalicelib.domains.knowledge.flows.index_file import Passage
from chalicelib.domains.knowledge.rules import passages
from tests.domains.knowledge.conftest import Bot

TEXTS = st.text(max_size=300) | st.text(alphabet="\"'*()^:-+{}ANDORNEAабв _\0\ud800", max_size=60)


@pytest.fixture(scope="module")
def index_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("index") / "i.sqlite"
    path.write_bytes(index_file.build([Passage("s", "Bread", "", "We sell rye bread.")]))
    return path


@given(question=TEXTS)
@example(question='"')
@example(question='bread" OR title:*')
@example(question="NEAR(bread, 1) AND NOT ^rye")
@example(question="___ " * 20)
@example(question=" ".join(f"word{number}" for number in range(2000)))
@example(question="a" * 100_000)
def test_search_accepts_any_question(index_path: Path, question: str) -> None:
    index_file.search(index_path, question, 5, lambda _: True)


@given(texts=st.lists(TEXTS, max_size=5))
def test_any_text_can_be_indexed(texts: list[str]) -> None:
    normal_texts = [passages.normal_form(text) for text in texts]
    index_file.build(Passage("s", text, "", text) for text in normal_texts)


@pytest.mark.usefixtures("cache")
def test_passages_are_scanned_without_full_text_search(
    bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot.add("Цены", text="Ржаной хлеб стоит 240 рублей.")
    bot.add("Other", text="We deliver.")
    bot.run_jobs()
    monkeypatch.setattr(index_file, "has_fts5", lambda: False)
    assert bot.finds("Сколько стоит хлеб?") == ["Цены"], "a file with full-text search"
    bot.add("Ещё", text="Хлеб каждый день.")
    bot.run_jobs()
    assert sorted(bot.finds("хлеб")) == ["Ещё", "Цены"], "a file without it"
    monkeypatch.undo()
