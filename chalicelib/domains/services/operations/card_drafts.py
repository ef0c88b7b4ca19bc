"""Draft a service card with AI."""

from typing import Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core.limits import HEAVY
from chalicelib.core.operations import operation
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Wire, has_at_least_one, optional
from chalicelib.domains.catalog.flows import drafting
from chalicelib.domains.catalog.flows.drafting import CardName, DraftOut, Language, Prompt
from chalicelib.domains.files.flows.photos import PhotoOut


class ServiceDraftRequest(Wire):
    """Input for a draft. At least one of ``name`` and ``prompt`` is required."""

    AT_LEAST_ONE_OF = ("name", "prompt")

    name: CardName | None = optional("Rough name.")
    prompt: Prompt | None = optional("What to emphasize.")
    language: Language = Field(default="ru", description="Language of the draft.")

    @model_validator(mode="after")
    def _require_name_or_prompt(self) -> Self:
        if not has_at_least_one(self):
            raise PydanticCustomError("empty", "send at least one of name, prompt")
        return self


class ServiceDraft(DraftOut):
    """A drafted service card. It has no price; set one yourself."""

    duration_min: int | None = Field(description="Usual length in minutes, or null.")


class ServiceDraftResult(Wire):
    """A drafted card with photo candidates. Neither is stored."""

    draft: ServiceDraft = Field(description="The card. Check it, then call svc_create_service.")
    images: list[PhotoOut] = Field(description="Photo candidates, at most 10.")


@operation(
    tool=True,
    rest="POST /api/services/ai-fill",
    scope=Scope.SERVICES_WRITE,
    title="Draft a service with AI",
    open_world=True,
    limit=HEAVY,
    example={"name": "Tasting, 45 min", "language": "en"},
)
def ai_fill_service(ctx: Context, args: ServiceDraftRequest) -> ServiceDraftResult:
    """Draft a service, with photos. Nothing is stored; add a price."""
    drafted = drafting.draft_card(
        ctx, "service", language=args.language, name=args.name, prompt=args.prompt
    )
    return ServiceDraftResult(
        draft=ServiceDraft.model_validate(drafted.card), images=drafted.images
    )
