"""Page of a resource's opening hours: a week, and dates with other hours."""

from dataclasses import dataclass
from datetime import date
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import AppError, FieldError, ValidationError, VersionConflictError
from chalicelib.lib.zoned_times import WEEKDAYS
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import STORED, Form, Save, State
from chalicelib.transports.console.form_controls import Field, Record, Typed
from chalicelib.transports.console.services import hours_form
from chalicelib.transports.console.services.hours_form import Day, Intervals
from chalicelib.transports.console.services.services import booking_path
from chalicelib.transports.console.services.staff import find_resource, services_of, staff_path
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts

DATE = "date"
"""The key of the date's hours in the form, beside the weekdays."""
Rules = list[dict[str, Any]]


@dataclass(frozen=True)
class Hours(Field):
    """The hours of a weekday. Hours in another zone are others, so ``record`` has the zone."""

    record: Record | None = None

    def typed(self, request: ConsoleRequest) -> Typed:
        """Return the day as typed."""
        return {self.name: hours_form.read(request.form, self.name)}

    def shown(self, _: ConsoleRequest, record: Record, /) -> Typed:
        """Return the day as stored, or a suggestion if no hours were ever set."""
        if record["isSet"]:
            return {self.name: hours_form.of_intervals(self.name, record["week"][self.name])}
        return {self.name: hours_form.suggested(self.name)}

    def stored(self, record: Record) -> tuple[str, Intervals]:
        """Return the zone and the hours of the day."""
        return record["timezone"], record["week"][self.name]

    def value(self, typed: Typed) -> tuple[str, Intervals]:
        """Return the zone and the hours that were typed."""
        day: Day = typed[self.name]
        zone, stored = self.stored(self.record or {})
        if wrong := hours_form.errors(day, stored):
            errors = [FieldError(line, text) for line, text in wrong.items()]
            raise ValidationError("Some hours are wrong.", errors=errors)
        return zone, day.intervals

    def words(self, request: ConsoleRequest, typed: Typed, /) -> str:
        """Return the hours, for people to compare."""
        return _text(request, typed[self.name].intervals)

    def words_of(self, request: ConsoleRequest, record: Record, /) -> str:
        """Return the stored hours, for people to compare."""
        return _text(request, record["week"][self.name])


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the opening hours of a resource, with a form to change them."""
    return _page(request, _find(request))


def save(request: ConsoleRequest) -> HttpResponse:
    """Save the week, add or delete a date, or change the form without saving it."""
    found = _find(request)
    form = _form(found)
    action, _, target = request.form_value("action").partition(":")
    match action:
        case "copy" | "add" | "remove":
            typed = _date_typed(request) if target.startswith(DATE) else form.typed(request)
            _change_lines(typed, action, target)
            return _page(request, found, State(typed=typed))
        case "delete-date":
            rules = [each for each in found["rules"] if each["date"] != target]
            return _store(request, found, rules, "date_deleted")
        case "add-date":
            return _add_date(request, found)

    return form.save(request, Save(_find, "set_availability", _page, _saved, "", _arguments))


def _saved(request: ConsoleRequest, found: Record, answer: dict[str, Any]) -> HttpResponse:
    if not (answer or found["isSet"]):  # A week without any hours is set, too.
        return _store(request, found, found["rules"], "hours_saved")
    return redirect(f"{request.path}?done=hours_saved")


def _form(found: Record) -> Form:
    days = (Hours(day, f"day_{day}", record=found) for day in WEEKDAYS)
    return Form(*days, problems=_problem)


def _find(request: ConsoleRequest) -> Record:
    """Return a resource with its rules, their version, and the hours of each weekday."""
    resource = find_resource(request)
    stored = request.call("list_availability", resourceId=resource["id"])
    weekly = {each["weekday"]: each["intervals"] for each in stored["rules"]}
    return {
        **resource,
        "resource": resource,
        "rules": stored["rules"],
        "version": stored["version"],
        "isSet": stored["updatedAt"] is not None,
        "week": {day: weekly.get(day, []) for day in WEEKDAYS},
    }


def _arguments(found: Record, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the rules with the changed days. Rules of dates stay as they are."""
    week = {**found["week"], **{day: intervals for day, (_, intervals) in changes.items()}}
    weekly = [{"weekday": day, "intervals": week[day]} for day in WEEKDAYS if week[day]]
    return _rules(found, [*weekly, *(each for each in found["rules"] if each["date"])])


def _rules(found: Record, rules: Rules) -> dict[str, Any]:
    sent = [{name: value for name, value in each.items() if value is not None} for each in rules]
    return {"resourceId": found["id"], "rules": sent}


def _problem(request: ConsoleRequest, error: AppError) -> Problem | None:
    """Return the error of each line, after the name of its day. Messages are keys of texts."""
    keys = [each.message for each in error.errors]
    if not keys or not all(texts.has(request.language, key) for key in keys):
        return None
    fields = {each.field: request.translate(each.message) for each in error.errors}
    for field, text in fields.items():
        if (key := field.partition("-")[0]) in WEEKDAYS:
            fields[field] = f"{request.translate(f'day_{key}')}: {text}"
    return Problem(request.translate("wrong_fields"), fields)


def _change_lines(typed: Typed, action: str, target: str) -> None:
    """Copy Monday, add a blank line to a day, or remove a line, in what was typed."""
    key, _, number = target.partition("-")
    if action == "copy":
        typed |= {day: typed["mon"]._replace(key=day) for day in WEEKDAYS[:5]}
    elif key in typed and action == "add":
        typed[key] = hours_form.add_line(typed[key])
    elif key in typed:
        place = int(number) if number.isdecimal() else -1
        typed[key] = hours_form.remove_line(typed[key], place)


def _date_typed(request: ConsoleRequest) -> Typed:
    day = hours_form.read(request.form, DATE)
    return {DATE: day._replace(is_open=request.form_value("kind") == "open")}


def _add_date(request: ConsoleRequest, found: Record) -> HttpResponse:
    """Add the hours of a date. Other dates and the week stay as they are now."""
    day: Day = _date_typed(request)[DATE]
    typed = request.form_value("date").strip()
    wrong = hours_form.errors(day)
    if not _is_date(typed):
        wrong["date"] = "wrong_date_missing"
    elif any(each["date"] == typed for each in found["rules"]):
        wrong["date"] = "wrong_date_taken"
    elif typed < _today(found):
        wrong["date"] = "wrong_date_past"
    if wrong:
        error = ValidationError("", errors=[FieldError(*each) for each in wrong.items()])
        return _page(request, found, State(error.status, _problem(request, error)))
    rule = {"date": typed, "intervals": day.intervals}
    return _store(request, found, [*found["rules"], rule], "date_added")


def _is_date(text: str) -> bool:
    try:
        return str(date.fromisoformat(text)) == text
    except ValueError:
        return False


def _today(found: Record) -> str:
    """Return the date of today in the resource's zone."""
    return str(clock.local_day(clock.now(), found["timezone"]))


def _store(request: ConsoleRequest, found: Record, rules: Rules, done: str) -> HttpResponse:
    """Replace all rules, unless another person has changed them since they were read."""
    try:
        request.call("set_availability", ifVersion=found["version"], **_rules(found, rules))
    except AppError as error:
        problem = request.problem(error)
        if isinstance(error, VersionConflictError):
            problem = Problem(request.translate("hours_conflict"))
        return _page(request, _find(request), State(error.status, problem))
    return redirect(f"{_path(request, found)}?done={done}")


def _path(request: ConsoleRequest, found: Record) -> str:
    return f"{staff_path(request, found['resource'])}/hours"


def _text(request: ConsoleRequest, intervals: Intervals) -> str:
    shown = ", ".join(f"{each['start']}\u2013{each['end']}" for each in intervals)
    return shown or request.translate("closed")


def _page(request: ConsoleRequest, found: Record, state: State = STORED) -> HttpResponse:
    resource, dates = found["resource"], [each for each in found["rules"] if each["date"]]
    form, today = _form(found), _today(found)
    date_day = (state.typed or {}).get(DATE) or _date_typed(request)[DATE]
    if state.typed and DATE in state.typed:
        state = state._replace(typed=None)
    shown = form.shown(request, found, state)
    return request.page(
        "staff_hours",
        resource=resource,
        heading=resource["name"],
        path=staff_path(request, resource),
        tab="hours",
        days=[shown["typed"][day] for day in WEEKDAYS],
        date_day=date_day,
        date_typed=request.form_value("date"),
        date_kind=request.form_value("kind") or "closed",
        dates=[
            {
                **each,
                "text": _text(request, each["intervals"]),
                "day": texts.day(request.language, date.fromisoformat(each["date"])),
            }
            for each in dates
            if each["date"] >= today
        ],
        past_dates=sum(each["date"] < today for each in dates),
        is_set=found["isSet"],
        today=today,
        misplaced=request.call("list_bookings_at_closed_times", resourceId=resource["id"]),
        booking_path=booking_path(request),
        services=services_of(request, resource),
        hours_text=lambda intervals: _text(request, intervals),
        **shown,
    )
