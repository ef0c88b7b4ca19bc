"""Labels of the values of a form, read from the page that shows the form.

A form that was kept has the names of its fields only. Its page has the labels of its controls and
choices.
"""

from collections.abc import Iterable
from html.parser import HTMLParser
from typing import NamedTuple

from chalicelib.core.text import collapse_spaces

_CHOICES = frozenset({"checkbox", "radio"})


class LabelledValue(NamedTuple):
    """A value of a form with its label. A tick has a label only."""

    label: str
    content: str


class _Controls(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.label_by_id: dict[str, str] = {}
        self.id_by_name: dict[str, str] = {}
        self.own_label: dict[str, str] = {}
        self.choices: dict[tuple[str, str], str] = {}
        self._label_for = self._select = ""
        self._open_label: tuple[str, str] | None = None
        self._open_option: str | None = None
        self._is_in_label = self._is_hint = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {attribute: text or "" for attribute, text in attrs}
        name = values.get("name", "")
        match tag:
            case "label":
                self._is_in_label, self._label_for = True, values.get("for", "")
            case "input" if values.get("type") in _CHOICES:
                self._open_label = (name, values.get("value", "on"))
            case "input" | "textarea" | "select" if name and values.get("type") != "hidden":
                self.id_by_name[name] = values.get("id", "")
                self.own_label[name] = values.get("aria-label", "")
                self._select = name if tag == "select" else ""
            case "option":
                self._open_option = values.get("value", "")
            case "span" | "br" if self._is_in_label and (
                tag == "br" or "hint" in values.get("class", "").split()
            ):
                self._is_hint = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "label":
            self._is_in_label, self._label_for, self._open_label = False, "", None
            self._is_hint = False
        if tag in {"option", "select"}:
            self._open_option = None

    def handle_data(self, data: str) -> None:
        if self._open_option is not None and self._select:
            key = (self._select, self._open_option)
            self.choices[key] = self.choices.get(key, "") + data
        elif self._is_in_label and not self._is_hint:
            if self._open_label:
                self.choices[self._open_label] = self.choices.get(self._open_label, "") + data
            elif self._label_for:
                text = self.label_by_id.get(self._label_for, "")
                self.label_by_id[self._label_for] = text + data


def label_values(page: str, fields: Iterable[tuple[str, str]]) -> list[LabelledValue]:
    """Return the values that the controls of a page show, each with its label.

    Empty values and hidden fields are left out.
    """
    controls = _Controls()
    controls.feed(page)
    values = []
    for name, typed_value in fields:
        choice = collapse_spaces(controls.choices.get((name, typed_value), "")).strip()
        if name in controls.id_by_name and typed_value.strip():
            label = controls.label_by_id.get(controls.id_by_name[name]) or controls.own_label[name]
            values.append(LabelledValue(collapse_spaces(label).strip(), choice or typed_value))
        elif choice:
            values.append(LabelledValue(choice, ""))
    return values
