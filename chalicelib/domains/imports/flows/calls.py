"""Call the operations that create and update the records of an import."""

import hashlib
from typing import Any

from pydantic_core import from_json, to_json

from chalicelib.application.context import Context
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Principal, Role, SessionPrincipal
from chalicelib.core.unit import AuditEvent, IdempotencyRecord
from chalicelib.core.wire import parsing
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.imports.rules.job_kinds import IMPORT
from chalicelib.engine.unit import UnitOfWork, run_unit


class PreviewCalls:
    """Calls without effect: what they stage is never committed."""

    def __init__(self, principal: Principal, workspace_id: str) -> None:
        self._principal, self._workspace_id = principal, workspace_id

    def __call__(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        unit = UnitOfWork(self._workspace_id)
        return _data(_handled(operation, self._principal, unit, arguments))


class JobCalls:
    """Calls of the job of an import, each of which takes effect once.

    The outcomes of each transaction are stored with it. If a run dies before it has saved how far
    it came, the next one makes the same calls, which return the stored outcomes.
    """

    def __init__(self, workspace_id: str, import_id: str, account_id: str) -> None:
        self._workspace_id, self._import_id = workspace_id, import_id
        self._principal = SessionPrincipal(
            workspace_id=workspace_id,
            plan=workspaces.get(workspace_id).plan,
            account_id=account_id,
            membership=Role.MANAGER,
        )

    def __call__(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        digest = hashlib.sha256(to_json([operation, arguments])).hexdigest()
        record = IdempotencyRecord(f"import:{self._import_id}", digest, digest)

        def stage(unit: UnitOfWork) -> dict[str, Any]:
            if operation.startswith("create_"):
                return self._create(unit, operation, arguments)
            return _data(_handled(operation, self._principal, unit, arguments))

        event = AuditEvent.by_job(IMPORT)
        return run_unit(self._workspace_id, event, stage, record=record)

    def _create(
        self, unit: UnitOfWork, operation: str, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        def create(part: UnitOfWork) -> bytes:
            return to_json(_data(_handled(operation, self._principal, part, arguments)))

        data: dict[str, Any] = from_json(unit.commit_batch("record", create))
        return data


def _handled(
    operation: str, principal: Principal, unit: UnitOfWork, arguments: dict[str, Any]
) -> Wire:
    declared = REGISTRY[operation]
    args = parsing.parse(declared.input, arguments)
    return declared.handler(Context(principal, unit, unit.request_id), args)


def _data(result: Wire) -> dict[str, Any]:
    return result.model_dump(mode="json", by_alias=True)
