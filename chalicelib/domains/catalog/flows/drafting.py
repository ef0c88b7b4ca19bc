"""Draft cards with a language model, and find photo candidates, without storing a draft."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core.call_warnings import CallWarning, WarningCode
from chalicelib.core.errors import AppError, NotFoundError, UpstreamFailedError, call
from chalicelib.core.limits import Limit
from chalicelib.core.settings import settings
from chalicelib.core.wire.schema import Pattern, Wire
from chalicelib.domains.catalog.flows import barcodes
from chalicelib.domains.catalog.store import categories
from chalicelib.domains.catalog.store.categories import CategoryRow
from chalicelib.domains.catalog.store.products import ProductRow, find_by_barcode
from chalicelib.domains.files.flows import photos
from chalicelib.domains.files.flows.photos import PhotoOut
from chalicelib.engine import limits
from chalicelib.gateways.barcodes import LookupFailedError
from chalicelib.gateways.llm import FailureKind, ModelError, complete, drafting_model, drafts
from chalicelib.gateways.llm.drafts import DraftError, DraftRequest, Kind
from chalicelib.gateways.retry_after import LONGEST_WAIT
from chalicelib.lib import trees
from chalicelib.lib.barcodes import Barcode

# Limit for the model, in seconds. With 3 s for the barcode and 8 s for photos, the response is sent
# within API Gateway's 29 seconds.
MODEL_SECONDS = 15.0
MAX_OUTPUT_TOKENS = 2000
MAX_PHOTOS = 10


def _check_visible_text(text: str) -> str:
    if not drafts.has_visible_text(text):
        message = "expected at least one visible character outside HTML tags"
        raise PydanticCustomError("invisible", message)
    return text


CardName = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=drafts.MAX_NAME),
    AfterValidator(_check_visible_text),
]
Prompt = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=2000),
    AfterValidator(_check_visible_text),
]
# A language code (BCP 47), such as ``ru`` or ``pt-BR``.
Language = Annotated[str, Pattern("[A-Za-z0-9-]{2,35}", "a language code, such as ru or pt-BR")]

log = logging.getLogger(__name__)


class DraftOut(Wire):
    """A drafted card. A model wrote it: review it before it is saved."""

    name: str = Field(description="Suggested name.")
    description: str = Field(description="Description for customers.")
    category_id: str | None = Field(description="Id of a category of the workspace, or null.")
    category_name: str | None = Field(description="The category's name, or null.")
    tags: list[str] = Field(description="Words that customers search by.")


class Drafted(NamedTuple):
    card: Mapping[str, object]  # fields of a ``DraftOut``
    images: list[PhotoOut]
    warnings: tuple[CallWarning, ...] = ()


def draft_card(  # noqa: PLR0913  what a card can be drafted from
    ctx: Context,
    kind: Kind,
    *,
    language: str,
    name: str | None = None,
    prompt: str | None = None,
    barcode: Barcode | None = None,
) -> Drafted:
    """Request a card from the model, and search for photos of the article.

    If a product of the workspace has the barcode, the draft starts from its data, and a warning
    says so. Otherwise the barcode is looked up in open databases. A failed photo search adds a
    warning. So does a failed barcode look-up, if there is a name or a prompt.

    Raises:
        RateLimitedError: the key's heavy calls of this minute or the workspace's drafts of this UTC
            day are used up. A failed draft counts, because the model was paid.
        NotConfiguredError: no model is configured.
        NotFoundError: only a barcode is given, and no database has it.
        UpstreamFailedError: the model failed, or the look-up of a barcode without other data
            failed.
    """
    warnings: list[CallWarning] = []

    def draft() -> Drafted:
        # Fails before any database is requested if no model is configured.
        drafting_model(ctx.workspace_id)
        categories_by_id = _categories_of_kind(ctx.workspace_id, kind)
        own_product = find_by_barcode(ctx.workspace_id, gtin14=barcode.gtin14) if barcode else None
        if own_product is not None:
            message = (
                f'Your product "{own_product.name}" ({own_product.id}) has this barcode, so the '
                f"draft starts from its data. Change this product "
                f"({call('svc_update_product')}) instead of creating another one."
            )
            product = {"id": own_product.id, "name": own_product.name}
            warnings.append(CallWarning(message, WarningCode.BARCODE_TAKEN, product))
            facts = _facts_from_product(own_product, categories_by_id)
        else:
            needed = not (name or prompt)
            facts = (
                _facts_from_databases(ctx.workspace_id, barcode, warnings, needed=needed)
                if barcode
                else {}
            )
        request = DraftRequest(
            kind=kind,
            language=language,
            name=name,
            prompt=prompt,
            barcode=barcode.digits if barcode else None,
            facts=facts,
            categories=_paths(categories_by_id),
        )
        # The model is paid for each request, so the draft is counted first.
        limits.take(_daily(), ctx.workspace_id)
        draft = _request_draft(ctx.workspace_id, request)
        category_id = draft.category_id
        if own_product is not None and own_product.category_id in categories_by_id:
            category_id = own_product.category_id
        category = categories_by_id[category_id].name if category_id else None
        card = {
            **asdict(draft),
            "tags": list(draft.tags),
            "category_id": category_id,
            "category_name": category,
        }
        images = _photos(ctx.workspace_id, [draft.name, category], warnings)
        return Drafted(card, images, tuple(warnings))

    # A conflict repeats the unit, and a second draft would be paid for.
    drafted = ctx.unit.run_side_effect_once("draft", draft)
    for warning in drafted.warnings:
        ctx.warn(warning.message, code=warning.code, **warning.facts)
    return drafted


def _daily() -> Limit:
    max_requests = settings().ai_drafts_per_day
    return Limit(
        "ai-drafts", "AI drafts per workspace and UTC day", max_requests, timedelta(days=1)
    )


def _facts_from_product(
    product: ProductRow, categories_by_id: Mapping[str, CategoryRow]
) -> dict[str, str]:
    category = categories_by_id.get(product.category_id or "")
    facts = {
        "name": product.name,
        "description": product.description,
        "category": category and category.name,
    }
    return {label: text for label, text in facts.items() if text}


def _facts_from_databases(
    workspace_id: str, barcode: Barcode, warnings: list[CallWarning], *, needed: bool
) -> dict[str, str]:
    try:
        article = barcodes.look_up(workspace_id, barcode)
    except LookupFailedError as failure:
        what = f"The barcode look-up failed: {failure.reason}."
        if needed:
            msg = f"{what} Try again later, or also send a name or a prompt."
            raise UpstreamFailedError(msg, key="barcode_databases") from failure
        message = f"{what} The draft was created without data from a barcode."
        facts = {"reason": failure.reason}
        warnings.append(CallWarning(message, WarningCode.BARCODE_LOOKUP_FAILED, facts))
        return {}
    if article is None and needed:
        msg = (
            f"No database has the barcode {barcode.digits}. Also send a name or a prompt that "
            "describes the product."
        )
        raise NotFoundError(msg, key="barcode")
    facts = asdict(article) if article else {}
    labels = ("name", "brand", "description", "category")
    return {label: facts[label] for label in labels if facts.get(label)}


def _categories_of_kind(workspace_id: str, kind: Kind) -> dict[str, CategoryRow]:
    return {
        category.id: category
        for category in categories.read_all(workspace_id)
        if category.kind == kind
    }


def _paths(categories_by_id: Mapping[str, CategoryRow]) -> list[tuple[str, str]]:
    parents = {id_: category.parent_id for id_, category in categories_by_id.items()}
    paths = {id_: [id_, *trees.ancestors(parents, id_)] for id_ in categories_by_id}
    return [
        (id_, " / ".join(categories_by_id[i].name for i in reversed(path)))
        for id_, path in paths.items()
    ]


def _photos(
    workspace_id: str, queries: Iterable[str | None], warnings: list[CallWarning]
) -> list[PhotoOut]:
    try:
        return photos.candidates(workspace_id, queries, max_photos=MAX_PHOTOS)
    except AppError as failure:
        code, facts = WarningCode.PHOTO_SEARCH_FAILED, {"error": failure.code}
        warnings.append(CallWarning(failure.message, code, facts))
        return []


def _request_draft(workspace_id: str, request: DraftRequest) -> drafts.Draft:
    chat_model, model = drafting_model(workspace_id)
    try:
        answer = complete(
            chat_model,
            drafts.messages(request),
            model=model,
            max_output_tokens=MAX_OUTPUT_TOKENS,
            seconds=MODEL_SECONDS,
            json_object=True,
        )
        return drafts.parse(answer.text, request.categories, request.kind)
    except ModelError as failure:
        log.warning("AI draft failed", extra={"kind": failure.kind, "reason": failure.reason})
        raise _model_error(failure.kind, failure.retry_after) from failure
    except DraftError as failure:
        log.warning("AI draft failed", extra={"kind": "invalid", "reason": failure.reason})
        msg = (
            f"The model's answer is not a valid card: {failure.reason}. Try again, or add details"
            " to the prompt."
        )
        raise UpstreamFailedError(msg, key="model_answer") from failure


_FAILURES = {
    "refused": "rejected the request; the operator should check the API key and the model's name",
    "rate_limited": "has reached its rate limit",
    "unavailable": "is unavailable",
    "timeout": "did not answer in time",
    "garbage": "sent an invalid answer",
}


def _model_error(kind: FailureKind, retry_after: float | None) -> UpstreamFailedError:
    wait = round(min(retry_after, LONGEST_WAIT)) if retry_after else None
    when = f"in {wait:,} s" if wait else "later"
    return UpstreamFailedError(
        f"The model {_FAILURES[kind]}. Try again {when}, or write the card yourself.",
        headers={"Retry-After": str(wait)} if wait else None,
        key="model",
    )
