# mypy: disable-error-code="method-assign, assignment, attr-defined"
# ruff: noqa: ANN401, SLF001
"""Let moto parse and check each expression only once."""

import pickle
from collections import deque
from functools import cache, lru_cache
from typing import Any

from moto.dynamodb import comparisons
from moto.dynamodb.parsing.ast_nodes import DepthFirstTraverser, Node
from moto.dynamodb.parsing.expressions import UpdateExpressionParser
from moto.dynamodb.parsing.validators import Validator

MAX_PARSED = 200
"""Maximum number of parsed conditions in memory."""
CHECKS_OF_EXPRESSIONS = 3
"""Number of moto's checks, at the beginning, that depend only on an expression."""


def make_quick() -> None:
    """Change moto in this process, permanently."""
    _parse_each_expression_once()
    _parse_each_condition_of_a_request_once()
    _check_each_update_expression_once()
    _walk_only_nodes_that_are_looked_for()
    _copy_parsed_expressions()


def _parse_each_expression_once() -> None:
    """There are few expressions, since their values are separate.

    Code that changes one copies it.
    """
    UpdateExpressionParser.make = lru_cache(maxsize=None)(UpdateExpressionParser.make)
    parser = comparisons.ConditionExpressionParser
    lex = parser._lex_condition_expression

    @cache
    def nodes(expression: str) -> tuple[Any, ...]:
        return tuple(lex(parser(expression, None, None)))

    def quick(condition: Any) -> deque[Any]:
        return deque(nodes(condition.condition_expression))

    parser._lex_condition_expression = quick


def _parse_each_condition_of_a_request_once() -> None:
    """Moto parses a condition two or three times: to validate it, in a transaction, in its write.

    The parsed conditions refer to the names and values of their requests. The memory keeps both,
    so that no other object can have the same id.
    """
    parse = comparisons.ConditionExpressionParser.parse
    parsed: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def quick(parser: Any) -> Any:
        if not parser.condition_expression:
            return parse(parser)
        names, values = parser.expression_attribute_names, parser.expression_attribute_values
        key = (
            parser.condition_expression,
            id(names) if names else None,
            id(values) if values else None,
        )
        if key not in parsed:
            if len(parsed) > MAX_PARSED:
                parsed.clear()
            operation = parse(parser)
            parsed_names = tuple(parser.expr_attr_names_found), tuple(parser.expr_attr_values_found)
            parsed[key] = (operation, *parsed_names, names, values)
            return operation
        operation, names_found, values_found, *_ = parsed[key]
        parser.expr_attr_names_found.extend(names_found)
        parser.expr_attr_values_found.extend(values_found)
        return operation

    comparisons.ConditionExpressionParser.parse = quick


def _check_each_update_expression_once() -> None:
    """Three of ten checks of an update depend only on its expression, its names and the table.

    Moto also checks the update of a new row twice: against an empty item, then against its key.
    """
    init, validate = Validator.__init__, Validator.validate
    checked_updates: set[tuple[Any, ...]] = set()

    def quick_init(validator: Any, expression: Any, **options: Any) -> None:
        init(validator, expression, **options)
        names = validator.expression_attribute_names or {}
        validator.key = expression, frozenset(names.items()), validator.table.name

    def quick(validator: Any) -> Any:
        if not validator.item.attrs:
            return None
        if validator.key in checked_updates:
            validator.processors = validator.processors[CHECKS_OF_EXPRESSIONS:]
        result = validate(validator)
        checked_updates.add(validator.key)
        return result

    Validator.__init__, Validator.validate = quick_init, quick


def _walk_only_nodes_that_are_looked_for() -> None:
    """Call only the visitors of an update that handle a node's type, which never changes."""
    walk = DepthFirstTraverser.traverse_node_recursively
    matches_of_types: dict[tuple[type, type], bool] = {}

    def quick(walker: Any, node: Any, child_id: int = -1) -> Any:
        pair = type(walker), type(node)
        if pair not in matches_of_types:
            matches_of_types[pair] = not isinstance(node, Node) or isinstance(
                node, walker.nodes_to_be_processed()
            )
        if matches_of_types[pair]:
            return walk(walker, node, child_id)
        for place, child in enumerate(node.children or ()):
            if isinstance(child, str):
                continue
            walker.pre_processing_of_child(node, place)
            walker.traverse_node_recursively(child, place)
        return node

    DepthFirstTraverser.traverse_node_recursively = quick


def _copy_parsed_expressions() -> None:
    """Copy a tree of nodes from its pickle, which is made once."""
    pickled = cache(pickle.dumps)

    def node(original: Any, _memo: dict[int, Any]) -> Any:
        return pickle.loads(pickled(original))  # noqa: S301  its own data  # nosec B301

    Node.__deepcopy__ = node
