"""Updates of one row outside of a unit of work, under a condition."""

from pynamodb.exceptions import UpdateError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.core.retry import retry_on_conflict
from chalicelib.engine.connection import CONDITION_FAILED, CONFLICTS, error_code, raise_failure
from chalicelib.engine.tables import Row


def update_if(row: Row, actions: list[Action], condition: Condition) -> bool:
    """Update a row that has no version if it meets a condition; return whether it did.

    The row then has its new values. Raises UnavailableError if the database is unavailable.
    """

    def attempt() -> bool:
        try:
            row.update(actions, condition=condition)
        except UpdateError as error:
            if error_code(error) in CONFLICTS:
                raise ConcurrentUpdateError from error
            if error_code(error) != CONDITION_FAILED:
                raise_failure(error)
            return False
        return True

    return retry_on_conflict(attempt)
