"""Fields that other programs send: builders of sites, plugins, form services and their webhooks.

They use names of their own for the fields of a form, in the case, language and shape that they
like. ``assign`` finds what belongs to the form's fields, and keeps the rest under its own names.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

from pydantic_core import from_json

from chalicelib.domains.leads.rules.field_roles import (
    EMAIL,
    MESSAGE,
    NAME,
    PHONE,
    ROLES,
    plain,
    role_of,
)
from chalicelib.domains.leads.rules.form_fields import CART, FieldSpec

# Maximum depth of objects whose fields are read one by one. Deeper ones are kept as they are.
MAX_DEPTH = 6
_FIRST_NAMES = frozenset({"firstname", "first", "givenname", "имя", "name", "namefirst"})
_LAST_NAMES = frozenset({"lastname", "last", "surname", "familyname", "фамилия", "namelast"})
_BRACKETS = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])+)")
# Names of objects around fields, which say nothing about the fields. Others become a prefix.
_WRAPPERS = frozenset(
    {
        *("answers", "body", "contact", "data", "fields", "field_data", "form_data", "form_fields"),
        *("form_response", "namedvalues", "payload", "properties", "rawrequest", "responses"),
        *("submissions", "values"),
    }
)
_LABELS = ("title", "label", "name", "question", "key", "ref", "id")
_VALUES = ("value", "values", "answer", "response")
# Names of what describes the fields, and holds no value.
_SCHEMAS = frozenset({"definition", "schema"})
# Names of values that programs exchange, and of addresses of visitors, which are not stored.
_TECHNICAL = re.compile(
    r"_wpcf7.*|_wpnonce|_wp_http_referer|g-recaptcha-response|h-captcha-response"
    r"|cf-turnstile-response|smart-token|csrfmiddlewaretoken|csrf_?token|_token"
    r"|authenticity_token|utf8|_next|_captcha|_template|_autoresponse|cookies"
    r"|(?:meta\.)?(?:remote[ _]?ip|ip|ip[ _]?address|user[ _]?agent)(?:\..*)?"
    r"|(?:.*\.)?(?:definition|schema)",
    re.IGNORECASE,
)


class SentFields(NamedTuple):
    """What was sent: values by the names of the form's fields, others, and technical names."""

    values: dict[str, Any]
    others: dict[str, Any]
    technical: list[str]


class _Sent(NamedTuple):
    name: str  # under which the value is kept
    value: Any
    plain: frozenset[str]  # all its names in plain form

    @classmethod
    def named(cls, value: Any, *names: str) -> Self:  # noqa: ANN401  JSON
        # The value is kept under the first name.
        return cls(names[0], value, frozenset(map(plain, names)))


def assign(fields: Sequence[FieldSpec], submitted: Mapping[str, Any]) -> SentFields:
    """Assign sent values to the fields of a form.

    A field gets the value of its own name; else of a name that differs in case, spaces and
    punctuation, or is its label; else of a common name for an e-mail address, a phone, a name or a
    message. Empty values of other names are left out.
    """
    declared = {field.name for field in fields}
    own = {
        name
        for name, value in submitted.items()
        if name == CART or (name in declared and not isinstance(value, dict))
    }
    values = {name: submitted[name] for name in own}
    rest = _nested({name: value for name, value in submitted.items() if name not in own})
    sent = [each for each in _read(rest, _titles(rest)) if not _is_empty(each.value)]
    technical = [each.name for each in sent if _TECHNICAL.fullmatch(each.name)]
    sent = [each for each in sent if each.name not in technical]
    missing = [field for field in fields if _is_empty(values.get(field.name))]
    for words_of in (_names, _role_words):
        for field in list(missing):
            words = words_of(field, fields)
            found = next((each for each in sent if not words.isdisjoint(each.plain)), None)
            if found is not None:
                values[field.name] = found.value
                sent.remove(found)
                missing.remove(field)
    for field in missing:
        if _role(field, fields) == NAME and (parts := _name_parts(sent)):
            values[field.name] = " ".join(str(part.value) for part in parts)
            sent = [each for each in sent if each not in parts]
    others: dict[str, Any] = {}
    for each in sent:
        former = others.get(each.name)
        others[each.name] = each.value if former is None else _both(former, each.value)
    return SentFields(values, others, list(dict.fromkeys(technical)))


def _role(field: FieldSpec, fields: Sequence[FieldSpec]) -> str | None:
    # Only the first field of a type has the role of its type.
    if field.type in {EMAIL, PHONE}:
        first = next(each for each in fields if each.type == field.type)
        return field.type if field is first else None
    if field.type not in {"text", "textarea"}:
        return None
    role = role_of(field.name) or role_of(field.label)
    return role if role in {NAME, MESSAGE} else None


def _names(field: FieldSpec, _: Sequence[FieldSpec]) -> frozenset[str]:
    return frozenset({plain(field.name), plain(field.label)} - {""})


def _role_words(field: FieldSpec, fields: Sequence[FieldSpec]) -> frozenset[str]:
    # The words are in plain form.
    role = _role(field, fields)
    return frozenset(word for word, of in ROLES.items() if of == role)


def _name_parts(sent: Sequence[_Sent]) -> list[_Sent]:
    parts = [
        next((each for each in sent if not known.isdisjoint(each.plain)), None)
        for known in (_FIRST_NAMES, _LAST_NAMES)
    ]
    return [part for part in parts if part is not None and isinstance(part.value, str)]


def _nested(submitted: Mapping[str, Any]) -> dict[str, Any]:
    # PHP's form names: ``a[b][c]`` is an object, and ``a[]`` a list.
    result: dict[str, Any] = {}
    for name, value in submitted.items():
        match = _BRACKETS.fullmatch(name)
        keys = [match[1], *re.findall(r"\[([^\[\]]*)\]", match[2])] if match else [name]
        keys = [key for key in keys if key]
        if not 0 < len(keys) <= MAX_DEPTH:
            keys = [name]
        at = result
        for key in keys[:-1]:
            inner = at.setdefault(key, {})
            if not isinstance(inner, dict):  # ``a=1&a[b]=2``
                at, keys = result, [name]
                break
            at = inner
        key = keys[-1]
        at[key] = _both(at[key], value) if key in at else value
    return result


def _titles(value: Any, depth: int = 0) -> dict[str, str]:  # noqa: ANN401  JSON
    # Typeform sends titles of questions, with their ids, beside the answers.
    if not isinstance(value, dict) or depth > MAX_DEPTH:
        return {}
    questions = value.get("fields")
    titles = {
        str(question["id"]): str(question["title"])
        for question in (questions if isinstance(questions, list) else [])
        if isinstance(question, dict) and {"id", "title"} <= question.keys()
    }
    for inner in value.values():
        titles |= _titles(inner, depth + 1)
    return titles


def _read(
    value: Mapping[str, Any], titles: Mapping[str, str], prefix: str = "", depth: int = 0
) -> Iterator[_Sent]:
    for key, sent in value.items():
        name = f"{prefix}{key}"
        inner = _parsed(sent) if key == "rawRequest" else sent  # Jotform
        if key in _SCHEMAS:
            yield _Sent.named(inner, name)
        elif isinstance(inner, dict) and depth < MAX_DEPTH:
            whole = _labelled(inner, titles, key) or _person(inner, name)
            yield from [whole] if whole else _read(inner, titles, _prefix(inner, name), depth + 1)
        elif isinstance(inner, list) and (pairs := _all_labelled(inner, titles)):
            yield from pairs
        else:
            yield _Sent.named(_single(inner), name)


def _prefix(value: Mapping[str, Any], name: str) -> str:
    # An object that only wraps the fields adds nothing. Beside other wrapped objects stand facts of
    # the form, such as its name.
    own_name = name.rpartition(".")[2]
    is_wrapper = own_name.casefold() in _WRAPPERS
    wraps_more = any(
        key.casefold() in _WRAPPERS and isinstance(inner, dict | list)
        for key, inner in value.items()
    )
    return "" if is_wrapper and not wraps_more else f"{name}."


def _all_labelled(values: list[Any], titles: Mapping[str, str]) -> list[_Sent]:
    # A list of other values has none.
    pairs = [_labelled(each, titles) if isinstance(each, dict) else None for each in values]
    return [pair for pair in pairs if pair] if all(pairs) else []


def _labelled(
    value: Mapping[str, Any], titles: Mapping[str, str], key: str | None = None
) -> _Sent | None:
    # The value stands beside its label.
    kind, question = value.get("type"), value.get("field")
    if isinstance(kind, str) and isinstance(question, dict):  # Typeform
        names = [titles.get(str(question.get("id"))), question.get("title"), question.get("ref")]
        found = value.get(kind)
        if isinstance(found, dict):
            found = found.get("labels") or found.get("label") or found.get("other")
    else:
        place = next((name for name in _VALUES if name in value), None)
        if place is None:
            return None
        names = [*(value.get(label) for label in _LABELS), key]
        found = _chosen(value[place], value.get("options"))
    texts = [str(name) for name in names if isinstance(name, str | int) and str(name).strip()]
    if not texts or isinstance(found, dict):
        return None
    return _Sent.named(_single(found), *texts)


def _chosen(value: Any, options: Any) -> Any:  # noqa: ANN401  JSON
    # Tally sends chosen options as ids.
    if not isinstance(options, list) or not isinstance(value, list):
        return value
    texts = {o.get("id"): o.get("text") for o in options if isinstance(o, dict)}
    return [texts.get(each, each) if isinstance(each, str) else each for each in value]


def _person(value: Mapping[str, Any], name: str) -> _Sent | None:
    # A name or a phone may be sent in parts.
    parts = [str(part) for part in value.values() if isinstance(part, str) and part.strip()]
    if value and value.keys() <= {"prefix", "first", "middle", "last", "suffix"}:
        return _Sent.named(" ".join(parts), name)
    if "full" in value and value.keys() <= {"full", "area", "phone", "country"}:
        return _Sent.named(value["full"], name)
    return None


def _parsed(text: Any) -> Any:  # noqa: ANN401  JSON
    try:
        return from_json(text)
    except (TypeError, ValueError):
        return text


def _single(value: Any) -> Any:  # noqa: ANN401  JSON
    if isinstance(value, list):
        values = [each for each in value if not _is_empty(each)]
        return values[0] if len(values) == 1 else values
    return value


def _both(one: Any, other: Any) -> list[Any]:  # noqa: ANN401  JSON
    return [
        *(one if isinstance(one, list) else [one]),
        *(other if isinstance(other, list) else [other]),
    ]


def _is_empty(value: Any) -> bool:  # noqa: ANN401  JSON
    return value in (None, "", [], {}) or (isinstance(value, str) and not value.strip())
