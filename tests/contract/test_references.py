"""An id of another workspace in any field is treated like an unknown id."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from infra.local.demo.examples import name_of
from tests.conftest import all_rows
from tests.contract.conftest import World
from tests.contract.test_access import drop_key_usage
from tests.factories.examples import WORDS, example, send
from tests.support.sweep import sweep

INSTEAD_OF = {
    "pageId": "projectId",
    "fileId": "text",
    "clientId": "client",
    "categoryId": "value",
    "uploadId": "content",
}
"""The field that a reference replaces."""
WITH = {"bulk_products": {"action": "setCategory"}}
"""Arguments without which an operation ignores the reference."""


ID = re.compile("(?<!^external)Ids?$")
"""The end of a field that names a record, which an id in the caller's system does not."""
NOUNS = [word.removesuffix("_ID") for word in WORDS if word.endswith("_ID")]


def noun_of(field: str, operation: Operation) -> str | None:
    """Return the noun of the record that a field names, or None."""
    if field in {"parentId", "moveTo"}:  # in a record of the same noun
        singular = re.sub("ies$", "y", operation.name.partition("_")[2])
        return singular.removesuffix("s").upper()
    name = ID.sub("", field)
    for noun in NOUNS if name != field else ():
        names = {name_of(noun), to_camel(noun.lower())}
        if name in names or name.endswith(tuple(map(str.capitalize, names))):  # orderForm
            return noun
    return None


def references() -> Iterator[Any]:
    """Yield each field of an operation that names another record, and the record's noun."""
    for operation in REGISTRY.select(Audience.KEY):
        for field in operation.input_schema["properties"]:
            noun = noun_of(field, operation)
            if noun and f"{{{field}}}" not in operation.path:
                yield pytest.param(operation, field, noun.lower(), id=f"{operation.name}-{field}")


@sweep("operation", REGISTRY.select(Audience.KEY))
def test_every_field_of_an_id_names_a_noun_of_an_example(operation: Operation) -> None:
    fields = [field for field in operation.input_schema["properties"] if ID.search(field)]
    unknown = [field for field in fields if noun_of(field, operation) is None]
    assert unknown == [], "name the noun in OTHER_NAMES of infra/local/demo/examples.py"


@pytest.mark.parametrize(("operation", "field", "kind"), [*references()])
def test_a_reference_to_another_workspace_is_answered_like_an_unknown_one(
    operation: Operation, field: str, kind: str, world: World, restore: Callable[..., World]
) -> None:
    theirs = restore("theirs").things
    arguments = example(operation, world.things)
    arguments.pop(INSTEAD_OF.get(field, ""), None)
    arguments |= WITH.get(operation.name, {})
    rows_before = drop_key_usage(all_rows())

    def answer(record_id: str) -> tuple[int, str]:
        value = [record_id] if field.endswith("Ids") else record_id
        response = send(world.api, operation, arguments | {field: value})
        body = response.body.decode().replace(record_id, "ID")
        return response.status, body.replace(response.data.get("requestId", "-"), "")

    foreign = answer(getattr(theirs, kind))
    assert foreign[0] in ({200, 404} if operation.read_only else {404})
    assert foreign == answer(new_id())
    assert not [record_id for record_id in vars(theirs).values() if record_id in foreign[1]]
    assert drop_key_usage(all_rows()) == rows_before
