"""Tables in which many records of a noun are changed at once.

*Save all* sends the rows that the user has changed. Each is saved alone, as the page of its record
saves it: a row that another user has changed meanwhile is shown with both values, and so is a row
that is refused. Ticked rows are archived, get a category, or get prices by a rule, which is shown
with its results before it changes anything (ADR 125).
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

from chalicelib.application.batches import OK
from chalicelib.core.errors import AppError, ConflictError, NotFoundError, ValidationError
from chalicelib.transports.console import typed_values
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import (
    STORED,
    Form,
    Merged,
    Save,
    State,
    problem_at_fields,
)
from chalicelib.transports.console.form_controls import Record
from chalicelib.transports.console.list_page import ListPage
from chalicelib.transports.http import HttpResponse, redirect

ROWS = 25  # of a page
FILTERS = {"q": "q", "status": "status", "category": "categoryId"}
NO_CATEGORY = "-"  # value of the choice that takes the category away
ROUNDINGS = ("nearest", "up", "down")
RULE = ("direction", "kind", "ruleValue", "roundTo", "rounding")
MAX_PERCENT = {"raise": 1000, "lower": 100}
_ID = re.compile("[0-9A-Za-z]{1,64}", re.ASCII)
_PERCENT = re.compile(r"([0-9]{1,4})(?:[.,]([0-9]{1,2}))?%?", re.ASCII)
_PRICE = re.compile("[0-9]{1,12}", re.ASCII)
_SPACES = re.compile(r"[\s\u00a0\u202f]")


class Column(NamedTuple):
    """A control of each row: a field of the form, and the keyboard that a phone shows for it."""

    name: str
    label: str
    keyboard: str = "text"


class RowOutcomes(NamedTuple):
    """What became of the rows of a form."""

    refused: Mapping[str, Merged] = {}
    gone: Sequence[str] = ()  # names of rows whose records do not exist any more
    kept: Collection[str] = ()  # ids of rows that show what was typed
    ticked: Collection[str] = ()


AS_STORED = RowOutcomes()


@dataclass(frozen=True)
class Many:
    """The table of a noun's records."""

    noun: str  # such as ``product``
    nouns: str  # such as ``products``, of the list's result and of the path
    prices: str  # the operation that changes prices by a rule
    form: Form  # of a row
    columns: tuple[Column, ...]
    categories: Callable[[ConsoleRequest], Mapping[str, str]]

    def index(self, request: ConsoleRequest) -> HttpResponse:
        """Show the table."""
        return self._table(request)

    def submit(self, request: ConsoleRequest) -> HttpResponse:
        """Save the changed rows, or do with the ticked rows what the pressed button says."""
        do = request.form_value("do")
        if do == "apply":
            return self._apply(request)
        ids, ticked = _ids(request, "row"), _ids(request, "pick")
        if do in {"", "save"}:
            return self._save(request, ids)
        if do == "tick":
            return self._table(request, RowOutcomes(kept=ids, ticked=ids))
        return self._change_ticked(request, do, ids, ticked)

    def _change_ticked(
        self, request: ConsoleRequest, do: str, ids: Sequence[str], ticked: Sequence[str]
    ) -> HttpResponse:
        typed = RowOutcomes(kept=ids, ticked=ticked)
        if not ticked:
            return self._table(request, typed, 400, Problem(request.translate("many_none_ticked")))
        if any(self._is_touched(request, record_id) for record_id in ids):
            return self._table(request, typed, 400, Problem(request.translate("many_save_first")))
        if do == "preview":
            return self._preview(request, ticked, typed)
        values: dict[str, Any] = {"status": "active" if do == "restore" else "inactive"}
        if do == "category":
            category = request.form_value("category")
            if not category:
                text = request.translate("many_no_category_chosen")
                problem = Problem(request.translate("wrong_fields"), {"category": text})
                return self._table(request, typed, 400, problem)
            values = {"categoryId": None if category == NO_CATEGORY else category}
        elif do not in {"archive", "restore"}:
            raise ValidationError.of("do", message="expected a button of the page")
        return self._set(request, ticked, values)

    def _set(
        self, request: ConsoleRequest, ticked: Sequence[str], values: Mapping[str, Any]
    ) -> HttpResponse:
        failed: dict[str, str] = {}
        for record_id in ticked:
            try:
                request.call(f"update_{self.noun}", id=record_id, **values)
            except AppError as error:
                failed[record_id] = request.problem(error).summary
        if not failed:
            return self._back(request, "many_saved")
        problem = Problem(" ".join(dict.fromkeys(failed.values())))
        return self._table(
            request, RowOutcomes(ticked=failed.keys()), ConflictError.status, problem
        )

    def _save(self, request: ConsoleRequest, ids: Sequence[str]) -> HttpResponse:
        refused: dict[str, Merged] = {}
        gone: list[str] = []
        for record_id in ids:
            row = _row(request, record_id)
            how = Save(lambda _, i=record_id: self._find(request, i), _no_page, "")  # type: ignore[misc]  # mypy sees no default
            try:
                if self._is_touched(request, record_id):
                    merged = self.form.merge(row, how)
                    if merged.refused:
                        refused[record_id] = merged
            except NotFoundError:
                gone.append(row.form_value("name"))
        if not refused and not gone:
            return self._back(request, "many_saved")
        fields = {
            f"{field}-{record_id}": f"{merged.record['name']}: {text}"
            for record_id, merged in refused.items()
            if merged.refused and merged.refused.problem
            for field, text in merged.refused.problem.fields.items()
        }
        problem = Problem(request.translate("many_not_saved", n=len(refused) + len(gone)), fields)
        return self._table(request, RowOutcomes(refused, gone), ConflictError.status, problem)

    def _is_touched(self, request: ConsoleRequest, record_id: str) -> bool:
        return self.form.is_touched(_row(request, record_id))

    def _find(self, request: ConsoleRequest, record_id: str) -> Record:
        record: Record = request.call(f"get_{self.noun}", id=record_id)[self.noun]
        return record

    def _back(self, request: ConsoleRequest, notice: str) -> HttpResponse:
        return redirect(f"{request.path}{request.query_with(done=notice)}")

    def _table(
        self,
        request: ConsoleRequest,
        outcome: RowOutcomes = AS_STORED,
        status: int = 200,
        problem: Problem | None = None,
    ) -> HttpResponse:
        def values(_: ConsoleRequest, response: dict[str, Any]) -> dict[str, Any]:
            return {
                "rows": self._rows(request, response[self.nouns], outcome),
                "gone": outcome.gone,
                "columns": self.columns,
                "categories": self.categories(request),
                "no_category": NO_CATEGORY,
                "roundings": ROUNDINGS,
                "rule": {name: request.form_value(name) for name in RULE},
                "limits": self.form.limits,
                "nouns": self.nouns,
            }

        operation = f"list_{self.nouns}"
        page = ListPage("many", operation, ROWS, FILTERS, values)
        filters = {name: request.query_value(name).strip() for name in FILTERS}
        return page.page(request, filters, status, problem)

    def _rows(
        self, request: ConsoleRequest, records: Sequence[Record], outcome: RowOutcomes
    ) -> list[dict[str, Any]]:
        # A refused row is shown first, also if the list does not have its record any more.
        others = (record for record in records if record["id"] not in outcome.refused)
        refused = (merged.record for merged in outcome.refused.values())
        return [self._row_values(request, record, outcome) for record in (*refused, *others)]

    def _row_values(
        self, request: ConsoleRequest, record: Record, outcome: RowOutcomes
    ) -> dict[str, Any]:
        record_id = record["id"]
        state = STORED
        if merged := outcome.refused.get(record_id):
            state = merged.refused or STORED
        elif record_id in outcome.kept:
            state = State(form_values=self.form.read_form(_row(request, record_id)))
        form = self.form.page_values(request, record, state)
        problem = state.problem
        return {
            "id": record_id,
            "name": record["name"],
            "status": record["status"],
            "category": record["categoryId"],
            "typed": form["typed"],
            "conflicts": form["conflicts"],
            "wrong": problem.fields if problem else {},
            "summary": problem.summary if problem and not problem.fields else "",
            "ticked": record_id in outcome.ticked,
        }

    def _preview(
        self, request: ConsoleRequest, ticked: Sequence[str], typed: RowOutcomes
    ) -> HttpResponse:
        try:
            rule = _rule(request)
            items = [{"id": record_id} for record_id in ticked]
            response = request.call(self.prices, items=items, dryRun=True, **rule)
        except ValidationError as error:
            problem = problem_at_fields(request, error)
            return self._table(request, typed, error.status, problem)
        return self._prices_page(request, response["results"], is_preview=True)

    def _apply(self, request: ConsoleRequest) -> HttpResponse:
        items = [
            {"id": record_id, "price": int(price)}
            for record_id in _ids(request, "pick")
            if _PRICE.fullmatch(price := request.form_value(f"from-{record_id}"))
        ]
        if not items:
            raise ValidationError.of("pick", message="expected the rows of the preview")
        response = request.call_once(self.prices, items=items, **_rule(request))
        if response["summary"]["failed"]:
            return self._prices_page(request, response["results"], is_preview=False)
        return self._back(request, "prices_changed")

    def _prices_page(
        self, request: ConsoleRequest, results: Sequence[Record], *, is_preview: bool
    ) -> HttpResponse:
        rows = []
        for result in results:
            try:
                name = self._find(request, result["id"])["name"]
            except NotFoundError:
                name = ""
            rows.append({**result, "name": name})
        return request.page(
            "many_prices",
            200 if is_preview else ConflictError.status,
            rows=rows,
            is_preview=is_preview,
            changing=[row for row in rows if row["code"] == "changed"],
            refused=[row for row in rows if row["status"] != OK and row["before"] is not None],
            rule={name: request.form_value(name) for name in RULE},
            round_to=typed_values.amount(
                "roundTo", request.form_value("roundTo"), request.currency
            ),
            nouns=self.nouns,
            back=f"{request.path}{request.query_with()}",
        )


def _no_page(*_: Any) -> HttpResponse:  # noqa: ANN401  as Page
    raise AssertionError  # a row has no page of its own


def _ids(request: ConsoleRequest, name: str) -> list[str]:
    ids = [text for text in request.form.get(name, []) if _ID.fullmatch(text)]
    return list(dict.fromkeys(ids))[:ROWS]


def _row(request: ConsoleRequest, record_id: str) -> ConsoleRequest:
    """Return the request with the controls of one row, as if its form had been sent alone."""
    row, end = copy(request), f"-{record_id}"
    row.form = {
        name.removesuffix(end): values
        for name, values in request.form.items()
        if name.endswith(end)
    }
    return row


def _rule(request: ConsoleRequest) -> dict[str, Any]:
    """Return the arguments of the typed rule, or raise ValidationError for a control."""
    direction, text = request.form_value("direction"), request.form_value("ruleValue")
    sign = -1 if direction == "lower" else 1
    rule: dict[str, Any] = {}
    if step := typed_values.amount("roundTo", request.form_value("roundTo"), request.currency):
        rule["roundTo"] = step
    if (rounding := request.form_value("rounding")) in ROUNDINGS:
        rule["rounding"] = rounding
    if request.form_value("kind") == "amount":
        amount = typed_values.amount("ruleValue", text, request.currency)
        if not amount:
            raise ValidationError.of("ruleValue", message="expected an amount above 0")
        return {**rule, "amount": sign * amount}
    match = _PERCENT.fullmatch(_SPACES.sub("", text))
    hundredths = int(match[1]) * 100 + int((match[2] or "0").ljust(2, "0")) if match else 0
    if not 0 < hundredths <= 100 * MAX_PERCENT.get(direction, MAX_PERCENT["raise"]):
        raise ValidationError.of("ruleValue", message="expected a percentage above 0")
    # JSON's shortest decimal of this quotient has the two digits that were typed.
    return {**rule, "percent": sign * hundredths / 100}
