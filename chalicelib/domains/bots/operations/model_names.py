"""List the models that bots can use."""

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.lists import ListResult, WholePageQuery
from chalicelib.core.wire.schema import Wire
from chalicelib.gateways import llm
from chalicelib.gateways.llm import models
from chalicelib.gateways.llm.models import ModelSpec


class ModelOut(Wire):
    """A model. Prices are in kopecks for 1,000,000 tokens."""

    name: str = Field(description="Model name to set in a bot.")
    provider: str = Field(description="Provider: bedrock, openai or demo.")
    context_tokens: int = Field(description="Maximum tokens of input and answer together.")
    max_output_tokens: int = Field(description="Maximum tokens of an answer.")
    input_price: int = Field(description="Kopecks for 1,000,000 tokens of input.")
    output_price: int = Field(description="Kopecks for 1,000,000 tokens of output.")


class ModelListQuery(WholePageQuery):
    """Page of the models."""


class ModelList(ListResult):
    """The known models."""

    models: list[ModelOut] = Field(description="The models, by name.")


@operation(rest="GET /api/agents/models", scope=Scope.AGENTS_READ, role=Role.MANAGER, example={})
def list_models(ctx: Context, args: ModelListQuery) -> ModelList:
    """List the models that bots can use here, with their limits and prices.

    Any other name is passed to the provider unchanged, and charged at the highest tariff.
    """
    specs = [
        spec
        for name in sorted(models.CATALOGUE)
        if (spec := _usable(name, tenant=ctx.workspace_id))
    ]
    shown = [ModelOut.from_row(spec._asdict()) for spec in specs[args.rows]]
    return ModelList(models=shown, **args.counted(len(specs)))


def _usable(name: str, *, tenant: str) -> ModelSpec | None:
    # Catalogue prices in micro-kopecks per token equal kopecks per million tokens.
    try:
        return llm.resolve(name, tenant=tenant)
    except NotConfiguredError:
        return None
