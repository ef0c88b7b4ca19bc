"""Submissions of forms, as visitors send them."""

from typing import Any

from tests.conftest import Answer, Api

FIELDS = [
    {"name": "name", "label": "Имя", "required": True},
    {"name": "email", "label": "Почта", "type": "email"},
    {"name": "day", "label": "Дата", "type": "date"},
    {"name": "comment", "label": "Комментарий", "type": "textarea"},
]
ANNA = {"name": "Анна", "email": "anna@example.com"}

visitor = Api(None)


def path(form: Any) -> str:
    return f"/api/public/forms/{form['id']}/submit"


def post(form: Any, body: Any, **headers: str) -> Answer:
    sent_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return visitor.call("POST", path(form), body, sent_headers)
