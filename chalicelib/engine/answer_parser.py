"""Parse responses of DynamoDB without botocore's walk, half of the CPU time of a long query."""

import json
import re
from typing import Any

from botocore.exceptions import BotoCoreError
from botocore.parsers import JSONParser, ResponseParserFactory

# Shapes whose values are numbers, strings, booleans, and items made of these.
_PLAIN = frozenset(
    {
        "BatchGetItemOutput",
        "GetItemOutput",
        "QueryOutput",
        "ScanOutput",
        "TransactGetItemsOutput",
        "UpdateItemOutput",
    }
)
# A string with this content also matches, and only makes the parser slower.
_BINARY = re.compile(rb'"BS?"\s*:')


class UnreadableAnswerError(BotoCoreError):  # type: ignore[misc]  # botocore has no types
    """A response of DynamoDB is not JSON. It may be cut, so a retry may help."""

    fmt = "DynamoDB's answer is not JSON: {reason}"


class AnswerParsers(ResponseParserFactory):  # type: ignore[misc]  # botocore has no types
    def create_parser(self, protocol_name: str) -> Any:  # noqa: ANN401  a parser of botocore
        if protocol_name == "json":
            return _AnswerParser(**self._defaults)
        return super().create_parser(protocol_name)


class _AnswerParser(JSONParser):  # type: ignore[misc]  # botocore has no types
    def _handle_json_body(self, raw_body: bytes, shape: Any) -> Any:  # noqa: ANN401  botocore's
        # The other responses already are JSON in the form in which botocore returns it.
        if getattr(shape, "name", None) not in _PLAIN or _BINARY.search(raw_body):
            return super()._handle_json_body(raw_body, shape)
        try:
            answer = json.loads(raw_body)
        except ValueError as error:
            # botocore would return an empty response, as if the table had no such rows.
            raise UnreadableAnswerError(reason=error) from error
        return {name: value for name, value in answer.items() if value is not None}
