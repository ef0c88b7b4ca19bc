"""The tests that make quick chooses for a change."""

import subprocess
from pathlib import Path

import pytest

from infra.local import quick


@pytest.mark.parametrize(
    ("changed", "chosen"),
    [
        ("tests/lib/test_slugs.py", "tests/lib/test_slugs.py"),
        ("tests/domains/chat/conftest.py", "tests/domains/chat"),
        ("tests/factories/pdf.py", "tests/domains/knowledge/test_parsing.py"),
        ("tests/snapshots/codes.txt", "tests/contract"),
        ("chalicelib/domains/catalog/store/products.py", "tests/domains/catalog"),
        ("chalicelib/domains/catalog/store/products.py", "tests/contract"),
        ("chalicelib/lib/slugs.py", "tests/lib/test_slugs.py"),
        ("chalicelib/core/settings.py", "tests/core/test_settings.py"),
        ("infra/local/seed.py", "tests/infra/local/test_seed.py"),
        ("infra/local/demo/bakery.toml", "tests/infra/local/test_demo.py"),
        ("infra/local/new_noun/templates/form.html.txt", "tests/infra/local/test_new_noun.py"),
        (
            "chalicelib/transports/web/templates/console/settings.html",
            "tests/transports/console/test_console_pages.py",
        ),
        (
            "chalicelib/transports/web/locale/ru/LC_MESSAGES/console.po",
            "tests/lib/test_po_files.py",
        ),
        ("docs/lists.md", "tests/docs"),
        ("docs/lists.md", quick.SAMPLES),
        ("sdk/python/README.md", "tests/contract/test_python_sdk.py"),
        ("infra/local/sdk.py", "tests/contract/test_python_sdk.py"),
        (
            "chalicelib/domains/clients/store/clients.py",
            "tests/domains/client_profiles/test_erased_fields.py",
        ),
    ],
)
def test_a_changed_file_chooses_its_tests(changed: str, chosen: str) -> None:
    assert (quick.ROOT / changed).exists()
    assert chosen in {*quick.tests_of(changed)}


def test_texts_of_the_console_choose_no_pages() -> None:
    chosen = {*quick.tests_of("chalicelib/transports/web/locale/ru/LC_MESSAGES/console.po")}
    assert chosen == {*quick.TEXTS}


def test_a_document_without_samples_does_not_run_those_of_others() -> None:
    assert quick.SAMPLES not in {*quick.tests_of("CHANGELOG.md")}
    assert quick.SAMPLES in quick.LONG_SWEEPS


def test_every_long_sweep_is_a_file_of_tests() -> None:
    assert [path for path in quick.LONG_SWEEPS if not (quick.ROOT / path).exists()] == []


def test_operations_are_those_of_the_changed_domains() -> None:
    chosen = quick.changed_operations(["chalicelib/domains/blog/rules.py", "chalicelib/lib/ids.py"])
    assert "create_blog_post" in chosen
    assert "create_product" not in chosen
    assert 10 < len(quick.changed_operations(["chalicelib/lib/ids.py"])) < 40


def test_operations_of_a_changed_page_have_its_noun_in_their_names() -> None:
    chosen = quick.changed_operations(["chalicelib/transports/console/clients.py"])
    assert {"create_client", "erase_client", "upsert_clients"} <= {*chosen}
    assert "create_product" not in chosen


def test_a_file_that_git_does_not_know_yet_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)

    git("init", "--initial-branch=main")
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    (tmp_path / "old").touch()
    git("add", ".")
    git(*author, "commit", "--message=First")
    git("switch", "--create", "coupons")
    (tmp_path / "committed").touch()
    git("add", ".")
    git(*author, "commit", "--message=Second")
    (tmp_path / "untracked").touch()
    monkeypatch.setattr(quick, "ROOT", tmp_path)
    assert quick.changed_files("main") == ["committed", "untracked"]
