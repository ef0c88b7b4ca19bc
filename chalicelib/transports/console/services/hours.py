"""Page of a resource's opening hours: a week, and dates with other hours."""

import json
from datetime import date
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import AppError, VersionConflictError
from chalicelib.lib.zoned_times import WEEKDAYS
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.services import hours_form
from chalicelib.transports.console.services.hours_form import Day
from chalicelib.transports.console.services.setup import booking_path
from chalicelib.transports.console.services.staff import (
    Resource,
    find_resource,
    services_of,
    staff_path,
)
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts

DATE = "date"
"""The key of the date's hours in the form, beside the weekdays."""
Rules = list[dict[str, Any]]


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the opening hours of a resource, with a form to change them."""
    return _Page(request).response(200)


def save(request: ConsoleRequest) -> HttpResponse:
    """Save the week, add or delete a date, or change the form without saving it."""
    page = _Page(request)
    action, _, target = request.form_value("action").partition(":")
    match action:
        case "copy":
            monday = page.days[0]
            copies = [monday._replace(key=day.key) for day in page.days[:5]]
            page.days[:5] = copies
            return page.response(200)
        case "add" | "remove":
            page.change_lines(action, target)
            return page.response(200)
        case "delete-date":
            rules = [each for each in page.rules if each["date"] != target]
            return page.store(rules, "date_deleted")
        case "add-date":
            return _add_date(page)
    return _save_week(page)


def _save_week(page: "_Page") -> HttpResponse:
    """Replace the hours of the week. Rules of dates stay as they are.

    If another person has changed the week since the form was opened, their hours are shown beside
    what was typed, and sending the form again replaces them.
    """
    wrong: dict[str, str] = {}
    for day in page.days:
        wrong |= hours_form.errors(day, page.stored_intervals(day.key))
    if wrong:
        return page.refused(wrong)
    if page.request.form_value("opened") not in {"", page.week}:
        if [day.intervals for day in page.days] == page.weekly_intervals:
            return page.done("hours_saved")
        return page.conflict()
    dates = [each for each in page.rules if each["date"]]
    return page.store([*hours_form.weekly_rules(page.days), *dates], "hours_saved")


def _add_date(page: "_Page") -> HttpResponse:
    """Add the hours of a date. Other dates and the week stay as they are now."""
    day = page.date_day
    if page.request.form_value("kind") == "closed":
        day = day._replace(is_open=False)
    typed = page.request.form_value("date").strip()
    wrong = hours_form.errors(day)
    if not _is_date(typed):
        wrong["date"] = "wrong_date_missing"
    elif any(each["date"] == typed for each in page.rules):
        wrong["date"] = "wrong_date_taken"
    elif typed < page.today:
        wrong["date"] = "wrong_date_past"
    if wrong:
        return page.refused(wrong)
    rule = {"date": typed, "intervals": day.intervals}
    return page.store([*page.rules, rule], "date_added")


def _is_date(text: str) -> bool:
    try:
        return str(date.fromisoformat(text)) == text
    except ValueError:
        return False


class _Page:
    """The page with what is stored and what was typed."""

    def __init__(self, request: ConsoleRequest) -> None:
        self.request = request
        self.resource: Resource = find_resource(request)
        self.path = staff_path(request, self.resource)
        self._read_stored()
        if "start-mon" in request.form:
            self.days = [hours_form.read(request.form, day) for day in WEEKDAYS]
        elif self.is_set:
            self.days = self._stored_days()
        else:
            self.days = [hours_form.suggested(day) for day in WEEKDAYS]
        date_day = hours_form.read(request.form, DATE)
        self.date_day = date_day._replace(is_open=request.form_value("kind") == "open")

    def _read_stored(self) -> None:
        stored = self.request.call("list_availability", resourceId=self.resource["id"])
        self.rules: Rules = stored["rules"]
        self.version: int = stored["version"]
        self.is_set = stored["updatedAt"] is not None

    def _stored_days(self) -> list[Day]:
        return [hours_form.of_intervals(day, self.stored_intervals(day)) for day in WEEKDAYS]

    @property
    def weekly_intervals(self) -> list[list[dict[str, str]]]:
        """The stored hours of each weekday, Monday first."""
        return [self.stored_intervals(day) for day in WEEKDAYS]

    @property
    def week(self) -> str:
        """The stored week as the form keeps it, to notice changes since it was opened."""
        return json.dumps([self.resource["timezone"], self.weekly_intervals])

    @property
    def today(self) -> str:
        """The date of today in the resource's zone."""
        return str(clock.local_day(clock.now(), self.resource["timezone"]))

    def stored_intervals(self, weekday: str) -> list[dict[str, str]]:
        """Return the stored hours of a weekday."""
        found = (each["intervals"] for each in self.rules if each["weekday"] == weekday)
        return next(found, [])

    def change_lines(self, action: str, target: str) -> None:
        """Add a blank line to a day, or remove a line, in what was typed."""
        key, _, number = target.partition("-")
        for place, day in enumerate(self.days):
            if day.key == key:
                self.days[place] = self._changed(action, day, number)
        if key == DATE:
            self.date_day = self._changed(action, self.date_day, number)

    @staticmethod
    def _changed(action: str, day: Day, number: str) -> Day:
        if action == "add":
            return hours_form.add_line(day)
        return hours_form.remove_line(day, int(number) if number.isdecimal() else -1)

    def store(self, rules: Rules, done: str) -> HttpResponse:
        """Replace all rules, unless another person has changed them since they were read."""
        sent = [
            {name: value for name, value in each.items() if value is not None} for each in rules
        ]
        try:
            self.request.call(
                "set_availability",
                resourceId=self.resource["id"],
                rules=sent,
                ifVersion=self.version,
            )
        except VersionConflictError:
            return self.conflict()
        except AppError as error:
            return self.response(error.status, self.request.problem(error))
        return self.done(done)

    def done(self, done: str) -> HttpResponse:
        """Redirect to the page, which confirms what was done."""
        return redirect(f"{self.path}/hours?done={done}")

    def conflict(self) -> HttpResponse:
        """Show the days that differ from what is stored now. Sending the form again saves it."""
        self._read_stored()
        rows = [
            (
                self.request.translate(f"day_{mine.key}"),
                self._text(self.stored_intervals(mine.key)),
                self._text(mine.intervals),
            )
            for mine in self.days
            if mine.intervals != self.stored_intervals(mine.key)
        ]
        problem = Problem(self.request.translate("hours_conflict"))
        return self.response(VersionConflictError.status, problem, rows)

    def _text(self, intervals: list[dict[str, str]]) -> str:
        shown = ", ".join(f"{each['start']}\u2013{each['end']}" for each in intervals)
        return shown or self.request.translate("closed")

    def refused(self, wrong: dict[str, str]) -> HttpResponse:
        """Show the form again with the error of each line."""
        translate = self.request.translate
        fields = {field: translate(text) for field, text in wrong.items()}
        for field, text in fields.items():
            if (key := field.partition("-")[0]) in WEEKDAYS:
                fields[field] = f"{translate(f'day_{key}')}: {text}"
        return self.response(400, Problem(translate("wrong_fields"), fields))

    def response(
        self,
        status: int,
        problem: Problem | None = None,
        conflicts: list[tuple[str, str, str]] | None = None,
    ) -> HttpResponse:
        """Return the page."""
        request = self.request
        dates = [each for each in self.rules if each["date"]]
        misplaced = request.call("list_bookings_at_closed_times", resourceId=self.resource["id"])
        opened = request.form_value("opened")
        return request.page(
            "staff_hours",
            status,
            problem=problem,
            resource=self.resource,
            heading=self.resource["name"],
            path=self.path,
            tab="hours",
            days=self.days,
            date_day=self.date_day,
            date_typed=request.form_value("date"),
            date_kind=request.form_value("kind") or "closed",
            dates=[
                {**each, "text": self._text(each["intervals"]), "day": _day_text(request, each)}
                for each in dates
                if each["date"] >= self.today
            ],
            past_dates=sum(each["date"] < self.today for each in dates),
            is_set=self.is_set,
            opened=opened if opened and conflicts is None else self.week,
            conflicts=conflicts or [],
            today=self.today,
            misplaced=misplaced,
            booking_path=booking_path(request),
            services=services_of(request, self.resource),
            hours_text=self._text,
        )


def _day_text(request: ConsoleRequest, rule: dict[str, Any]) -> str:
    return texts.day(request.language, date.fromisoformat(rule["date"]))
