"""The page of a resource's opening hours."""

from dataclasses import dataclass
from datetime import date
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import AppError, FieldError, ValidationError, VersionConflictError
from chalicelib.lib.zoned_times import WEEKDAYS
from chalicelib.transports.console.console_request import OWN_KEY, ConsoleRequest, Problem
from chalicelib.transports.console.form import STORED, Form, Save, State
from chalicelib.transports.console.form_controls import Field, Record, Typed
from chalicelib.transports.console.services import hours_form
from chalicelib.transports.console.services.hours_form import Day, Intervals
from chalicelib.transports.console.services.staff import find_resource, services_of, staff_path
from chalicelib.transports.console.services.upcoming_bookings import booking_path
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts

DATE = "date"  # The key of the date's hours in the form, next to the weekdays.
Rules = list[dict[str, Any]]


@dataclass(frozen=True)
class Hours(Field):
    """The hours of a weekday. Hours in another zone are others, so ``record`` has the zone."""

    record: Record | None = None

    def read_form(self, request: ConsoleRequest) -> Typed:
        return {self.name: hours_form.read(request.form, self.name)}

    def fill_controls(self, _: ConsoleRequest, record: Record, /) -> Typed:
        # The form suggests hours if none were ever set.
        if record["isSet"]:
            return {self.name: hours_form.day_from_intervals(self.name, record["week"][self.name])}
        return {self.name: hours_form.suggested(self.name)}

    def stored_value(self, record: Record) -> tuple[str, Intervals]:
        return record["timezone"], record["week"][self.name]

    def value(self, form_values: Typed) -> tuple[str, Intervals]:
        day: Day = form_values[self.name]
        zone, intervals = self.stored_value(self.record or {})
        if wrong := hours_form.errors(day, intervals):
            errors = [_wrong(line, key=key) for line, key in wrong.items()]
            raise ValidationError("Some hours are wrong.", errors=errors)
        return zone, day.intervals

    def words(self, request: ConsoleRequest, form_values: Typed, /) -> str:
        return _text(request, form_values[self.name].intervals)

    def words_of(self, request: ConsoleRequest, record: Record, /) -> str:
        return _text(request, record["week"][self.name])


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the opening hours of a resource, with a form to change them."""
    return _page(request, _find(request))


def save(request: ConsoleRequest) -> HttpResponse:
    """Save the week, add or delete a date, or change the form without saving it."""
    hours = _find(request)
    form = _form(hours)
    action, _, target = request.form_value("action").partition(":")
    match action:
        case "copy" | "add" | "remove":
            form_values = (
                _date_typed(request) if target.startswith(DATE) else form.read_form(request)
            )
            _change_lines(form_values, action, target=target)
            return _page(request, hours, State(form_values=form_values))
        case "delete-date":
            rules = [rule for rule in hours["rules"] if rule["date"] != target]
            return _store(request, hours, rules, "date_deleted")
        case "add-date":
            return _add_date(request, hours)

    return form.save(request, Save(_find, _page, _saved, "", _arguments))


def _saved(request: ConsoleRequest, hours: Record, answer: dict[str, Any]) -> HttpResponse:
    if not (answer or hours["isSet"]):  # A week without any hours is set, too.
        return _store(request, hours, hours["rules"], "hours_saved")
    return redirect(f"{request.path}?done=hours_saved")


def _form(hours: Record) -> Form:
    days = (Hours(day, f"day_{day}", record=hours) for day in WEEKDAYS)
    return Form(*days, changes="set_availability", problems=_problem)


def _find(request: ConsoleRequest) -> Record:
    resource = find_resource(request)
    availability = request.call("list_availability", resourceId=resource["id"])
    weekly = {rule["weekday"]: rule["intervals"] for rule in availability["rules"]}
    return {
        **resource,
        "resource": resource,
        "rules": availability["rules"],
        "version": availability["version"],
        "isSet": availability["updatedAt"] is not None,
        "week": {day: weekly.get(day, []) for day in WEEKDAYS},
    }


def _arguments(hours: Record, changes: dict[str, Any]) -> dict[str, Any]:
    # Rules of dates do not change.
    week = {**hours["week"], **{day: intervals for day, (_, intervals) in changes.items()}}
    weekly = [{"weekday": day, "intervals": week[day]} for day in WEEKDAYS if week[day]]
    return _rules(hours, [*weekly, *(rule for rule in hours["rules"] if rule["date"])])


def _rules(hours: Record, rules: Rules) -> dict[str, Any]:
    rule_arguments = [
        {name: value for name, value in rule.items() if value is not None} for rule in rules
    ]
    return {"resourceId": hours["id"], "rules": rule_arguments}


def _problem(request: ConsoleRequest, error: AppError) -> Problem | None:
    own_errors = [each for each in error.errors if each.key.startswith(OWN_KEY)]
    if not own_errors or len(own_errors) < len(error.errors):
        return None
    fields = {each.field: request.translate(each.key) for each in own_errors}
    for field, text in fields.items():
        if (key := field.partition("-")[0]) in WEEKDAYS:
            fields[field] = f"{request.translate(f'day_{key}')}: {text}"
    return Problem(request.translate("wrong_fields"), fields)


def _wrong(line: str, *, key: str) -> FieldError:
    return FieldError(line, "expected other hours", key)


def _change_lines(form_values: Typed, action: str, *, target: str) -> None:
    key, _, number = target.partition("-")
    if action == "copy":
        form_values |= {day: form_values["mon"]._replace(key=day) for day in WEEKDAYS[:5]}
    elif key in form_values and action == "add":
        form_values[key] = hours_form.add_line(form_values[key])
    elif key in form_values:
        place = int(number) if number.isdecimal() else -1
        form_values[key] = hours_form.remove_line(form_values[key], place)


def _date_typed(request: ConsoleRequest) -> Typed:
    day = hours_form.read(request.form, DATE)
    return {DATE: day._replace(is_open=request.form_value("kind") == "open")}


def _add_date(request: ConsoleRequest, hours: Record) -> HttpResponse:
    # Other dates and the week do not change.
    day: Day = _date_typed(request)[DATE]
    day_text = request.form_value("date").strip()
    wrong = hours_form.errors(day)
    if not _is_date(day_text):
        wrong["date"] = "wrong_date_missing"
    elif any(rule["date"] == day_text for rule in hours["rules"]):
        wrong["date"] = "wrong_date_taken"
    elif day_text < _today(hours):
        wrong["date"] = "wrong_date_past"
    if wrong:
        errors = [_wrong(line, key=key) for line, key in wrong.items()]
        error = ValidationError("The hours of the date are wrong.", errors=errors)
        return _page(request, hours, State(error.status, _problem(request, error)))
    rule = {"date": day_text, "intervals": day.intervals}
    return _store(request, hours, [*hours["rules"], rule], "date_added")


def _is_date(text: str) -> bool:
    try:
        return str(date.fromisoformat(text)) == text
    except ValueError:
        return False


def _today(hours: Record) -> str:
    return str(clock.local_day(clock.now(), hours["timezone"]))


def _store(request: ConsoleRequest, hours: Record, rules: Rules, notice: str) -> HttpResponse:
    try:
        request.call("set_availability", ifVersion=hours["version"], **_rules(hours, rules))
    except AppError as error:
        problem = request.problem(error)
        if isinstance(error, VersionConflictError):
            problem = Problem(request.translate("hours_conflict"))
        return _page(request, _find(request), State(error.status, problem))
    return redirect(f"{_path(request, hours)}?done={notice}")


def _path(request: ConsoleRequest, hours: Record) -> str:
    return f"{staff_path(request, hours['resource'])}/hours"


def _text(request: ConsoleRequest, intervals: Intervals) -> str:
    intervals_text = ", ".join(
        f"{interval['start']}\u2013{interval['end']}" for interval in intervals
    )
    return intervals_text or request.translate("closed")


def _page(request: ConsoleRequest, hours: Record, state: State = STORED) -> HttpResponse:
    resource, dates = hours["resource"], [rule for rule in hours["rules"] if rule["date"]]
    form, today = _form(hours), _today(hours)
    date_day = (state.form_values or {}).get(DATE) or _date_typed(request)[DATE]
    if state.form_values and DATE in state.form_values:
        state = state._replace(form_values=None)
    page_values = form.page_values(request, hours, state)
    return request.page(
        "staff_hours",
        resource=resource,
        heading=resource["name"],
        path=staff_path(request, resource),
        tab="hours",
        days=[page_values["typed"][day] for day in WEEKDAYS],
        date_day=date_day,
        date_typed=request.form_value("date"),
        date_kind=request.form_value("kind") or "closed",
        dates=[
            {
                **rule,
                "text": _text(request, rule["intervals"]),
                "day": texts.day(request.language, date.fromisoformat(rule["date"])),
            }
            for rule in dates
            if rule["date"] >= today
        ],
        past_dates=sum(rule["date"] < today for rule in dates),
        is_set=hours["isSet"],
        today=today,
        misplaced=request.call("list_bookings_at_closed_times", resourceId=resource["id"]),
        booking_path=booking_path(request),
        services=services_of(request, resource),
        hours_text=lambda intervals: _text(request, intervals),
        **page_values,
    )
