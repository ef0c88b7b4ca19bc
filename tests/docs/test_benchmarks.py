"""docs/benchmarks.md is of this version, and has what the contract tests recorded last."""

from chalicelib import VERSION
from infra.bench import recorded_tables

PAGE = recorded_tables.DOCUMENT.read_text()


def test_the_page_was_measured_with_this_version() -> None:
    assert f"Measured with version {VERSION}." in PAGE, "Run make bench on a machine at rest."


def test_the_tables_of_requests_and_units_are_as_recorded() -> None:
    stale = "docs/benchmarks.md is stale: run make update, and look at what has changed."
    assert recorded_tables.markdown(PAGE) == PAGE, stale
