"""Sentences are for readers: errors have keys, warnings facts, and no program reads a sentence."""

import ast
import json
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.wire import parsing
from chalicelib.domains.booking_page.rules.refusals import Reason
from chalicelib.domains.knowledge.rules.problems import ProblemCode
from chalicelib.transports.api_docs.openapi import ERROR_KEYS
from chalicelib.transports.console.console_request import OWN_KEY
from tests.contract.test_house import MODULES, ROOT
from tests.support.sweep import sweep

# Sentences of other programs: the parser of JSON, and providers of models.
READ_OTHERS = {"chalicelib/transports/json_faults.py", "chalicelib/gateways/llm/provider_errors.py"}
CODES = Path(__file__).parents[1] / "snapshots" / "codes.txt"
READERS = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition"}
READERS |= {"find", "index", "count", "split"}
LOOK_UPS = {"search", "match", "fullmatch", "findall", "finditer", "has", "translate"}
PROGRAMS = [
    path
    for path in MODULES
    if (name := str(path.relative_to(ROOT))) not in READ_OTHERS
    and name.startswith(("app.py", "chalicelib", "infra/operator"))
]


@cache
def trees() -> dict[Path, ast.Module]:
    """Return the parsed code of each module."""
    return {path: ast.parse(path.read_text()) for path in MODULES}


# Codes that say little more than the status, so that each error has a key beside its code.
SHARED_CODES = {
    "unauthorized",
    "forbidden",
    "not_found",
    "conflict",
    "payload_too_large",
    "unsupported_media_type",
    "rate_limited",
    "upstream_failed",
    "not_configured",
}
# Keys that are computed: the noun of a listing, the name of a limit, the reason of a visitor's one.
COMPUTED = {"self.noun.lower()", "key", "reason"}


class Raised(NamedTuple):
    """A call that makes an error."""

    place: str
    name: str  # of the class
    code: str
    method: str  # such as ``of``, or empty for the class itself
    arguments: dict[str | None, ast.expr]


@cache
def error_classes() -> dict[str, tuple[str, bool]]:
    """Return the code of each class of errors, and whether it has a constructor of its own."""
    bases, own = {}, {}
    for tree in trees().values():
        for node in ast.walk(tree):
            match node:
                case ast.ClassDef(name=name, bases=[ast.Name(id=base), *_], body=body):
                    bases[name], own[name] = base, {"": ""}
                    for each in body:
                        match each:
                            case ast.FunctionDef(name="__init__"):
                                own[name]["init"] = "own"
                            case ast.Assign(
                                targets=[ast.Name(id="code")], value=ast.Constant(value=str(code))
                            ):
                                own[name]["code"] = code
    found: dict[str, tuple[str, bool]] = {}
    for name in bases:
        line = [name]
        while line[-1] in bases:
            line.append(bases[line[-1]])
        if "AppError" in line:
            codes = [own[each]["code"] for each in line if "code" in own.get(each, {})]
            found[name] = (codes[0] if codes else "internal_error", "init" in own[name])
    return found


def raised() -> Iterator[Raised]:
    """Yield the errors of the service, except those whose class has set its own key."""
    classes = error_classes()
    for path, tree in trees().items():
        if path.relative_to(ROOT).parts[0] not in {"app.py", "chalicelib"}:
            continue
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in classes:
                    method = ""
                case ast.Call(func=ast.Attribute(attr=method, value=ast.Name(id=name))) if (
                    name in classes and method == "of"
                ):
                    pass
                case _:
                    continue
            code, has_own = classes[name]
            if name == "UnauthorizedError" or not has_own:
                arguments = {keyword.arg: keyword.value for keyword in node.keywords}
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield Raised(place, name, code, method, arguments)


@cache
def error_keys() -> dict[str, list[str]]:
    """Return the keys of errors by their code."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in raised():
        if each.method == "" or each.name == "NotFoundError":
            texts = texts_in(each.arguments.get("key", ast.Constant(value=None)))
            found[each.code].update(filter(None, texts))
    for tree in trees().values():
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id="Limit"), args=[ast.Constant(value=str(name)), *_]):
                    found["rate_limited"].add(name.replace("-", "_"))
                case ast.Call(func=ast.Name(id="Listing"), keywords=keywords):
                    for keyword in keywords:
                        if keyword.arg == "noun":
                            found["not_found"] |= {each.lower() for each in texts_in(keyword.value)}
    found["rate_limited"] |= {*get_args(Reason)}
    found["unavailable"].add("outcome_unknown")
    return {code: sorted(found[code]) for code in sorted(found) if found[code]}


def test_an_error_whose_code_has_several_reasons_has_a_key() -> None:
    errors = list(raised())
    assert len(errors) > 300
    for each in errors:
        key = each.arguments.get("key")
        is_literal = key is not None and all(texts_in(key)) and bool([*texts_in(key)])
        if each.code in SHARED_CODES:
            assert is_literal or (key is not None and ast.unparse(key) in COMPUTED), each.place
        elif each.name == "ValidationError" and each.method == "":
            assert is_literal or "errors" in each.arguments, each.place


def test_an_error_with_a_code_of_its_own_has_a_key_at_each_place_or_at_none() -> None:
    with_key = defaultdict(set)
    for each in raised():
        if each.code not in SHARED_CODES and each.method == "" and each.name != "ValidationError":
            with_key[each.name].add("key" in each.arguments)
    assert not [name for name, found in with_key.items() if len(found) > 1]


def passed_facts() -> Iterator[tuple[WarningCode, set[str]]]:
    """Yield the code and the names of the facts of each ``ctx.warn`` that names them."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(attr="warn"), keywords=keywords) if keywords:
                    arguments = {keyword.arg: keyword.value for keyword in keywords}
                    code = arguments.pop("code")
                    if None not in arguments:
                        assert isinstance(code, ast.Attribute), path
                        yield WarningCode[code.attr], {str(name) for name in arguments}


def test_a_warning_has_the_facts_of_its_code() -> None:
    found = list(passed_facts())
    assert len(found) > 30
    for code, facts in found:
        assert facts == {*code.facts}, code


@pytest.mark.parametrize("code", WarningCode)
def test_a_code_names_its_facts_beside_the_fields_of_every_warning(code: WarningCode) -> None:
    assert code == code.name.lower()
    assert code.meaning.endswith(".")
    assert not {"code", "message"} & {*code.facts}


def field_keys() -> Iterator[str]:
    """Yield the keys of field errors that modules outside of the console name."""
    yield from (key for key, _ in parsing._EXPECTED.values())
    for path, tree in trees().items():
        if "console" in path.parts:
            continue
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id="PydanticCustomError"), args=[key, *_]):
                    yield from texts_in(key)
                case ast.Call(func=ast.Name(id="FieldError"), args=[_, _, key]):
                    yield from texts_in(key)
                case ast.Call(
                    func=ast.Attribute(attr="of") | ast.Name(id="ImageError"), keywords=keywords
                ):
                    for keyword in keywords:
                        if keyword.arg == "key":
                            yield from texts_in(keyword.value)


def texts_in(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def test_public_names_of_codes_change_only_by_hand(update_snapshots: bool) -> None:
    """``make update`` adds new lines. The line of one that is renamed or gone is an error."""
    declared = {
        *(f"warning {code}: {', '.join(code.facts)}".rstrip(": ") for code in WarningCode),
        *(f"problem of a source {code}" for code in ProblemCode),
        *(f"error {code} {key}" for code, keys in error_keys().items() for key in keys),
        *(f"field {key}" for key in field_keys()),
    }
    known = set(CODES.read_text().splitlines())
    if update_snapshots:
        CODES.write_text("".join(f"{line}\n" for line in sorted(known | declared)))
        ERROR_KEYS.write_text(json.dumps(error_keys(), indent=1) + "\n")
    assert known - declared == set(), (
        "Programs decide by these. If they are meant to go, remove their lines from "
        "tests/snapshots/codes.txt by hand."
    )
    assert declared - {*CODES.read_text().splitlines()} == set(), "New: run make update."
    is_current = json.loads(ERROR_KEYS.read_text()) == error_keys()
    assert is_current, f"{ERROR_KEYS.relative_to(ROOT)} is stale: run make update."


def is_sentence(node: ast.AST) -> bool:
    """Whether an expression is the message of an error, a warning or an outcome."""
    match node:
        case ast.Attribute(attr="message", value=owner):
            return not isinstance(owner, ast.Attribute)  # such as the number in ``row.id.message``
        case ast.Subscript(slice=ast.Constant(value="message" | "warnings")):
            return True
        case ast.Call(func=ast.Name(id="str"), args=[ast.Name(id="error" | "failure")]):
            return True
    return False


def decides_by_sentence(node: ast.AST) -> bool:
    """Whether an expression compares, searches or looks up a sentence."""
    match node:
        case ast.Compare(left=left, comparators=others):
            is_none = all(isinstance(each, ast.Constant) and each.value is None for each in others)
            return not is_none and any(map(is_sentence, [left, *others]))
        case ast.Subscript(slice=key):
            return is_sentence(key)
        case ast.Call(func=ast.Attribute(attr="get"), args=[key, *_]):
            return is_sentence(key)
        case ast.Call(func=ast.Attribute(attr=name, value=owner), args=arguments):
            return (name in READERS and is_sentence(owner)) or (
                name in LOOK_UPS and any(map(is_sentence, arguments))
            )
    return False


def sentences_read(tree: ast.AST) -> list[str]:
    return [ast.unparse(node) for node in ast.walk(tree) if decides_by_sentence(node)]


@sweep("module", PROGRAMS)
def test_a_program_decides_by_codes_and_not_by_sentences(module: Path) -> None:
    assert sentences_read(trees()[module]) == []


@pytest.mark.parametrize(
    "expression",
    [
        '"received" in wrong.message',
        'outcome["message"] == "changed"',
        'error.message.startswith("expected")',
        'PATTERN.fullmatch(answer["warnings"][0]) or PATTERN.search(str(error))',
        'PRINTED[result["message"]]',
        "request.translate(error.message)",
    ],
)
def test_a_decision_by_a_sentence_is_found(expression: str) -> None:
    assert sentences_read(ast.parse(expression))


def test_no_error_of_our_own_has_the_name_of_one_of_pydantics() -> None:
    for tree in trees().values():
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id="PydanticCustomError"), args=[key, *_]):
                    assert not {*texts_in(key)} & parsing._PYDANTIC_ERRORS


def test_no_field_of_an_operation_has_a_key_of_the_consoles_own_texts() -> None:
    keys = set(field_keys())
    assert len(keys) > 50
    assert not [key for key in keys if key.startswith(OWN_KEY)]
