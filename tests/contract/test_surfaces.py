"""Every surface offers an operation or has a reason not to."""

from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from infra.local import surfaces
from tests.support.sweep import sweep

MISSING = [
    (operation, surface)
    for operation in REGISTRY
    for surface in surfaces.SURFACES
    if surface not in surfaces.offers(operation)
]
MEMBERS_OPERATIONS = [operation for operation in REGISTRY if Audience.SESSION in operation.audience]


@sweep(("operation", "surface"), MISSING)
def test_a_surface_that_lacks_an_operation_has_a_reason(operation: Operation, surface: str) -> None:
    why = surfaces.reason(operation, surface)
    table = {"key": "WITHOUT_ROUTE", "console": "WITHOUT_PAGE"}.get(surface, "the table")
    assert why, (
        f"{operation.name} has no surface {surface}. Offer it there, or name it at a reason of "
        f"{table} in infra/local/surfaces.py."
    )
    _, is_other, other = why.partition("as ")
    if is_other:
        assert surface in surfaces.offers(REGISTRY[other]), f"{other} has no surface {surface}."
    else:
        assert why in surfaces.REASONS


@sweep("operation", MEMBERS_OPERATIONS)
def test_a_page_calls_every_operation_of_members(operation: Operation) -> None:
    assert "console" in surfaces.offers(operation), (
        f"{operation.name} is for members, but no page calls it. Call it in "
        "chalicelib/transports/console, or take the role from its declaration."
    )


def test_no_reason_is_left_over() -> None:
    for surface, reasons in (
        ("key", surfaces.WITHOUT_ROUTE),
        ("console", surfaces.WITHOUT_PAGE),
    ):
        needed = {operation.name for operation, gap in MISSING if gap == surface}
        assert reasons.keys() - needed == set(), "remove them from infra/local/surfaces.py"
    given = {surfaces.reason(operation, surface) for operation, surface in MISSING}
    assert surfaces.REASONS.keys() - given == set()


def test_a_surface_shows_every_field_of_a_result() -> None:
    assert set(surfaces.fields_without_surface()) == surfaces.NOT_SHOWN.keys(), (
        "Show the field on a page, delete it, or give the reason in infra/local/surfaces.py."
    )


def test_the_page_of_surfaces_is_written_from_the_declarations() -> None:
    is_current = surfaces.markdown() in surfaces.DOCUMENT.read_text()
    assert is_current, "The tables of docs/surfaces.md are stale: run make update."
