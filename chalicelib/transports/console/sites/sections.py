"""The page that edits a site's page, or its draft, as sections.

Buttons that add, move or remove sections return the page with the typed values. Nothing is stored
until the draft is saved or published, so the page needs no script.
"""

import re
from dataclasses import dataclass
from typing import Any, get_args

from chalicelib.core.errors import AppError, ValidationError
from chalicelib.domains.sites.flows.page_objects import parts_without_host
from chalicelib.domains.sites.rules import page_html
from chalicelib.domains.sites.rules.sections import MAX_SECTIONS, SectionType
from chalicelib.transports.console.choices import FORMS
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Record, Typed
from chalicelib.transports.console.sites import drafts
from chalicelib.transports.console.sites.sites import site_path
from chalicelib.transports.console.uploads import REFUSED_FILE, store_files
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts

TYPES = get_args(SectionType)
NAMES = ("title", "text", "fileId", "formId")
PUBLISH = "publish"  # The button that saves and publishes.
Sections = list[dict[str, Any]]

_ACTION = re.compile(r"(up|down|remove):([0-9]{1,2})", re.ASCII)
# Matches the path of an error in one of the sections.
_SECTION = re.compile(r"sections\.([0-9]+)(?:\.(\w+))?", re.ASCII)
# Names of the controls of a section's fields, where they differ.
_CONTROLS = {"fileId": "photo", "formId": "form"}


@dataclass(frozen=True)
class SectionsField(Field):
    """The sections of a page. The controls of a section have its place in their names."""

    def read_form(self, request: ConsoleRequest) -> Typed:
        sections = []
        for place, kind in enumerate(request.form.get("type", [])[:MAX_SECTIONS]):
            uploads = store_files(request, f"photo-{place}")
            sections.append(
                {
                    "type": kind,
                    "title": request.form_value(f"title-{place}"),
                    "text": request.form_value(f"text-{place}").replace("\r\n", "\n"),
                    "fileId": uploads.ids[-1] if uploads.ids else "",
                    "formId": request.form_value(f"form-{place}"),
                    "url": "" if uploads.ids[1:] else request.form_value(f"url-{place}"),
                    "problem": uploads.problem,
                }
            )
        return {self.name: sections}

    def fill_controls(self, _: ConsoleRequest, record: Record, /) -> Typed:
        sections = record.get(self.name) or []
        return {self.name: [{name: text or "" for name, text in s.items()} for s in sections]}

    def stored_value(self, record: Record) -> Sections:
        return [_content(section) for section in record.get(self.name) or []]

    def value(self, form_values: Typed) -> Sections:
        for place, section in enumerate(form_values[self.name]):
            if section["problem"]:
                field = f"sections.{place}.fileId"
                raise ValidationError.of(field, message=section["problem"], key=REFUSED_FILE)
        return [_content(section) for section in form_values[self.name]]

    def words(self, request: ConsoleRequest, form_values: Typed, /) -> str:
        return ", ".join(
            " ".join([request.translate(f"section_{section['type']}"), *_words(section)])
            for section in form_values[self.name]
            if section["type"] in TYPES
        )


def _words(section: Record) -> list[str]:
    return [text for name in ("title", "text") if (text := section.get(name))]


def _content(section: Record) -> dict[str, Any]:
    values = {"type": section["type"]}
    for name in NAMES:
        if text := str(section.get(name) or "").strip():
            values[name] = text
    return values


def _problems(request: ConsoleRequest, error: AppError) -> Problem | None:
    fields = {}
    for wrong in error.errors:
        if match := _SECTION.fullmatch(wrong.field):
            name = match[2] or "text"
            control = f"{_CONTROLS.get(name, name)}-{match[1]}"
            # The message of a refused photo is a translation already.
            is_translated = wrong.key == REFUSED_FILE
            fields[control] = (
                wrong.message if is_translated else request.translate(f"section_no_{name}")
            )
    if fields:
        return Problem(request.translate("wrong_fields"), fields)
    return drafts.problem(request, error)


def _if_draft(request: ConsoleRequest, arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments | drafts.marks(request, drafts.IF_DRAFT)


FORM = Form(
    SectionsField("sections", "page_sections"),
    changes="save_page_draft",
    problems=_problems,
    prepare=_if_draft,
)


def save(request: ConsoleRequest) -> HttpResponse:
    """Save or publish the sections, or return the page with one added, moved or removed."""
    action = request.form_value("action")
    if action in {"", PUBLISH, drafts.DRAFT}:
        return _save(request)
    form_values = FORM.read_form(request)
    _act(form_values["sections"], action)
    return _page(request, drafts.find(request), State(form_values=form_values), is_unsaved=True)


def _saved(request: ConsoleRequest, read: Record, answer: Record) -> HttpResponse:
    path, draft = f"{drafts.path_of(request)}/sections", read["draft"]
    if request.form_value("action") == drafts.DRAFT:
        return redirect(f"{path}?done=draft_saved")
    if answer:
        return drafts.publish_shown(request, path, ifDraft=answer["mark"])
    if draft is None:  # Nothing was changed.
        return redirect(f"{path}?done=page_saved")
    shown = drafts.marks(request, drafts.IF_DRAFT)
    return drafts.publish_shown(request, path, **{drafts.IF_DRAFT: draft["mark"], **shown})


def _act(sections: Sections, action: str) -> None:
    # An action that is not possible changes nothing.
    kind = action.removeprefix("add:")
    if kind in TYPES and len(sections) < MAX_SECTIONS:
        sections.append({"type": kind, **dict.fromkeys((*NAMES, "url"), "")})
    match = _ACTION.fullmatch(action)
    place = int(match[2]) if match else len(sections)
    if match is None or place >= len(sections):
        return
    if match[1] == "remove":
        del sections[place]
        return
    neighbour = place + (1 if match[1] == "down" else -1)
    if 0 <= neighbour < len(sections):
        sections[place], sections[neighbour] = sections[neighbour], sections[place]


def _page(
    request: ConsoleRequest, read: Record, state: State = STORED, *, is_unsaved: bool = False
) -> HttpResponse:
    page, html = read["page"], read["html"]
    values = FORM.page_values(request, read, state)
    sections = values["typed"]["sections"]
    chosen = [section["formId"] for section in sections if section["type"] == "form"]
    forms = FORMS.offer(request, "form", chosen) if chosen else None
    # An only form needs no choice.
    choices = [] if forms and forms.is_only else [("", request.translate("choose_form"))]
    starters = {
        page_html.starter(page["title"], language=language).strip() for language in texts.LANGUAGES
    }
    return request.page(
        "page_sections",
        page=page,
        draft=read["draft"],
        path=drafts.path_of(request),
        site_path=site_path(request),
        just_saved=request.query_value("done") == "page_saved",
        frame_hosts=parts_without_host(page["url"], html),
        types=TYPES,
        forms=[*choices, *(forms.names.items() if forms else ())],
        offered_forms=forms,
        has_own_html=read["sections"] is None and html.strip() not in {"", *starters},
        full=len(sections) >= MAX_SECTIONS,
        most=MAX_SECTIONS,
        is_unsaved=is_unsaved,
        **values,
    )


show, _save = FORM.editing(drafts.find, _page, _saved)
