"""The rows that an export contains, and the changes that an import makes to these rows."""

import pytest

from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.core.operations import load_all
from chalicelib.domains.exports.flows import contents
from chalicelib.engine import tables
from chalicelib.engine.history import HistoryRow
from chalicelib.engine.listing.registry import LISTINGS, NOUNS
from chalicelib.engine.tables import Row
from infra.operator.transfer.rewriting import NewIds, UrlPrefixes, UrlRewriting
from tests.factories.transfer import ID
from tests.support.registers import check_register

load_all()


class TestContents:
    def test_every_class_of_rows_is_exported_or_excluded_with_a_reason(self) -> None:
        listed_rows = set(LISTINGS) - set(contents.EXCLUDED)
        exported_rows = {kind.row for kind in contents.EXPORTED}
        groups = [listed_rows, exported_rows, set(contents.DERIVED), set(contents.EXCLUDED)]
        groups.append(set(contents.VIEWS))
        for row_class in _row_classes():
            assert sum(row_class in some for some in groups) == 1, (
                f"{row_class.__qualname__} must stand once in "
                "chalicelib/domains/exports/flows/contents.py: in EXPORTED, VIEWS or DERIVED, "
                "or in EXCLUDED with the reason. A noun needs no line: register_listing exports it."
            )
        assert set().union(*groups) <= _row_classes()

    def test_new_nouns_are_exported_automatically(self) -> None:
        excluded_nouns = {
            listing.noun for row, listing in LISTINGS.items() if row in contents.EXCLUDED
        }
        assert excluded_nouns == {"EXPORT", "IMPORT", "POST"}
        assert {noun.noun for noun in contents.nouns()} == set(NOUNS) - excluded_nouns

    def test_every_kind_of_job_is_exported_or_excluded_with_a_reason(self) -> None:
        exported = {
            *(
                "category-cascade",
                "site-cascade",
                "site-purge",
                "site-restore",
                "folder-cascade",
                "file-purge",
            ),
            *(
                "resource-cascade",
                "starts-clear",
                "page-purge",
                "late-entries",
                "late-file-uses",
                "knowledge-fetch",
            ),
        }
        check_register(
            exported | set(contents.EXCLUDED_JOBS),
            declared=JOB_HANDLERS,
            place=(
                "EXCLUDED_JOBS of chalicelib/domains/exports/flows/contents.py, "
                "or the list in this test"
            ),
            line="why an export leaves the job out; in the test, if it takes the job",
        )


def _row_classes() -> set[type[Row]]:
    """Return every class of rows that has no subclasses."""
    found_classes, waiting = set(), [Row]
    while waiting:
        children = waiting.pop().__subclasses__()
        waiting += children
        found_classes.update(children)
    bases = {*tables.TABLES.values(), tables.Record, tables.ProgramRecord, HistoryRow}
    return {
        row_class
        for row_class in found_classes
        # The mark of an import is the operator's.
        if row_class not in bases and row_class.__module__.startswith("chalicelib.")
    }


class TestRewriting:
    def test_new_ids_keep_the_order_of_the_old(self) -> None:
        old = sorted(f"01ARZ3NDEK{n:06d}{9999999999 - n:010d}" for n in range(1000))
        ids = NewIds(b"seed", set(old))
        new = [ids.new_id(old_id) for old_id in old]
        assert new == sorted(new)
        assert len(set(new)) == len(old)
        assert not set(new) & set(old)
        assert all(ID.fullmatch(new_id) for new_id in new)

    def test_id_next_to_letters_is_replaced(self) -> None:
        old = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
        ids = NewIds(b"seed", {old})
        new = ids.new_id(old)
        for text in (f"files/{old}ABC123xyz/a.png", f"XY{old}", f"W#{old}#SITE", f"{old}{old}"):
            assert ids.rewrite_text(text) == text.replace(old, new)
        other = "01BX5ZZKBKACTAV9WEVGEMMVRZ"
        assert ids.rewrite_text(f"sku {other}") == f"sku {other}"

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('"http://a:8000/files/x"', '"https://b/files/x"'),
            ('"http://a:8000"', '"https://b"'),
            ("http://a:80001/x", "http://a:80001/x"),
            ('"http://a:8000/s/shop/menu"', '"https://shop-2.sites/menu"'),
            ('"/s/shop/menu"', '"/menu"'),
            ('"/s/shop"', '"/"'),
            ('"/s/shopping"', '"/s/shopping"'),
            ('"https://other/s/shop/x"', '"https://other/s/shop/x"'),
            (r'{"url":"{\"u\":\"http://a:8000/x\"}"}', r'{"url":"{\"u\":\"https://b/x\"}"}'),
        ],
    )
    def test_urls_of_the_platform_are_rewritten(self, old: str, new: str) -> None:
        urls = UrlRewriting(
            UrlPrefixes("http://a:8000", ""), UrlPrefixes("https://b", "sites"), {"shop": "shop-2"}
        )
        assert urls.rewrite_text(old) == new
