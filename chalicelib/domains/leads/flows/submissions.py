"""Forms that visitors submit. One unit of work stores and counts the lead and client."""

import hashlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from pydantic import Field
from pydantic_core import to_json

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.call_warnings import CallWarning, WarningCode
from chalicelib.core.errors import FieldError
from chalicelib.core.limits import Limit
from chalicelib.core.test_workspaces import is_test
from chalicelib.core.wire.schema import Id, Wire, optional
from chalicelib.domains.clients.flows import contacts, matching
from chalicelib.domains.clients.flows.contacts import Contact
from chalicelib.domains.clients.store import contact_lookups
from chalicelib.domains.identity.flows import brands
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.leads.flows import lead_quota
from chalicelib.domains.leads.flows.cart import read_cart
from chalicelib.domains.leads.rules import form_fields, sent_fields
from chalicelib.domains.leads.rules.form_fields import CART, FieldSpec, Place
from chalicelib.domains.leads.rules.form_texts import form_text
from chalicelib.domains.leads.rules.sent_fields import SentFields
from chalicelib.domains.leads.store import crm_metrics, leads
from chalicelib.domains.leads.store.forms import FORMS, FormRow
from chalicelib.domains.leads.store.leads import LEADS, LeadRow
from chalicelib.domains.sites.store import pages
from chalicelib.domains.sites.store.sites import SITES, SUSPENDED, SiteRow
from chalicelib.engine import limits
from chalicelib.engine.events import subscriptions
from chalicelib.engine.reading import Key, Rows
from chalicelib.lib import sources
from chalicelib.lib.currencies import RUB
from chalicelib.lib.markup.brands import Brand

# Submissions of one form by all visitors. If the limiter is unavailable, they are refused.
FORM_SUBMISSIONS_PER_DAY = Limit(
    "form-day",
    "submissions of a form per day",
    5_000,
    timedelta(days=1),
    share=lead_quota.VISITOR_LEADS_PER_DAY,
)
# Time within which equal values from one visitor do not create a second lead.
DEDUPLICATION_PERIOD = timedelta(minutes=10)


MAX_NAMED, MAX_NAMED_CHARACTERS = 20, 40  # Maximum number, and length, of names in a warning.


class Campaign(Wire):
    """Campaign parameters of the link that the visitor followed."""

    source: str | None = optional("Value of utm_source.")
    medium: str | None = optional("Value of utm_medium.")
    campaign: str | None = optional("Value of utm_campaign.")
    term: str | None = optional("Value of utm_term.")
    content: str | None = optional("Value of utm_content.")


class FormSubmission(Wire):
    """Values that a visitor submits."""

    id: Id = Field(description="Form id.")
    values: dict[str, Any] = Field(description="Values by field name.")
    page: str | None = optional("URL of the page with the form.")
    referrer: str | None = optional("URL of the page before it.")
    campaign: Campaign | None = optional("UTM parameters of the visit.")
    consent: bool | None = optional("Whether the visitor ticked the box beside the form's fields.")


class SubmissionResult(Wire):
    """Response to a visitor's submission."""

    id: Id = Field(description="Id of the submission.")
    message: str = Field(description="Message to show to the visitor.")
    redirect_url: str | None = Field(description="URL to redirect the browser to, or null.")


class Origin(NamedTuple):
    """The dialog with a bot in which a visitor ordered."""

    dialog_id: str | None = None
    client_id: str | None = None  # created by the dialog
    proposal_id: str | None = None  # confirmed by the visitor


NO_DIALOG = Origin()


class PublicForm(NamedTuple):
    """Attributes of a form that a transport needs to render its pages."""

    title: str
    fields: tuple[FieldSpec, ...]
    language: str
    redirect_url: str | None
    success_message: str
    is_test: bool = False  # of a test workspace
    currency: str = RUB  # of the prices of an order
    brand: Brand | None = None  # if the page of the form needs it


def public_form(form_id: str) -> PublicForm:
    """Return a form's attributes. Raises NotFoundError if it is unknown, or its site suspended."""
    workspace_id = FORMS.found_for_visitor(FORMS.workspace_of(form_id))
    form = FORMS.found_for_visitor(FORMS.find(workspace_id, record_id=form_id))
    _require_open(workspace_id)
    _open_site(workspace_id, form, Rows())
    return _public_form(form)


def form_with_brand(form_id: str) -> PublicForm:
    """Return what ``public_form`` does, and the form's business."""
    workspace_id = FORMS.found_for_visitor(FORMS.workspace_of(form_id))
    rows, key = Rows(), FORMS.key(workspace_id, record_id=form_id)
    rows.read([key, workspaces.key(workspace_id)])
    form = FORMS.found_for_visitor(rows.find(FormRow, key))
    _require_open(workspace_id)
    _open_site(workspace_id, form, rows)
    workspace = workspaces.get(workspace_id, rows)
    return _public_form(form)._replace(
        is_test=is_test(workspace_id), currency=workspace.currency, brand=brands.brand_of(workspace)
    )


def _require_open(workspace_id: str) -> None:
    if subscriptions.halt_of(workspace_id) is not None:
        raise FORMS.unavailable()


def _public_form(form: FormRow) -> PublicForm:
    return PublicForm(form.title, form.specs, form.language, form.redirect_url, _message(form))


def _open_site(workspace_id: str, form: FormRow, rows: Rows) -> SiteRow | None:
    # A form may belong to no site.
    if form.project_id is None:
        return None
    site = rows.find(SiteRow, SITES.key(workspace_id, record_id=form.project_id))
    if site is None or site.status == SUSPENDED:
        raise FORMS.unavailable()
    return site


def _message(form: FormRow) -> str:
    message: str = form.success_message or form_text(form.language, "received")
    return message


def submit(
    ctx: Context,
    args: FormSubmission,
    origin: Origin = NO_DIALOG,
) -> SubmissionResult:
    """Stage the lead of a visitor's submission.

    If a visitor submits the same values again within ten minutes, the first lead is returned. Equal
    values of another proposal are another order.

    Raises:
        NotFoundError: the form does not exist, or its site is suspended.
        RateLimitedError: the visitor or the form has too many submissions today.
        ValidationError: values are missing or wrong.
    """
    rows, key = ctx.unit.rows, FORMS.key(ctx.workspace_id, record_id=args.id)
    rows.read([key, workspaces.key(ctx.workspace_id)])
    form = FORMS.found_for_visitor(rows.find(FormRow, key))
    workspace = workspaces.get(ctx.workspace_id, rows)
    submitted = _read_submission(ctx, form, workspace, args.values, origin.proposal_id)
    # A closed site is the first reason to refuse, so nothing else is revealed about it.
    site = _open_site(ctx.workspace_id, form, rows)
    if submitted.errors:
        raise form_fields.rejection(form.specs, submitted.errors, form.language)
    for warning in submitted.warnings:
        ctx.warn(warning.message, code=warning.code, **warning.facts)
    earlier = leads.submission(submitted.key, rows)
    if earlier.lead_id is not None:
        ctx.unit.undo()  # It has been counted as a new lead.
        return _submission_result(form, earlier.lead_id)
    for limit, subject in _daily_limits(ctx, form):
        limits.stage(ctx.unit, limit, subject)
    # The last limit is the form's, which does not count for the visitor's share.
    *of_visitor, _ = _daily_limits(ctx, form)
    used = (limits.used(*counter, rows) + 1 for counter in of_visitor)
    if lead_quota.exceeds_share(workspace, used) and not submitted.over_quota():
        ctx.unit.undo()  # It has been counted, but it takes nothing from others.
        submitted = submitted._replace(over_quota=lambda: True)
    lead = _new_lead(ctx, form, site, workspace, submitted, args, origin)
    earlier.lead_id, earlier.expires = lead.id, clock.now() + DEDUPLICATION_PERIOD
    # Of two equal submissions, one commits, and the other runs again and finds this row.
    ctx.unit.save(earlier)
    return _submission_result(form, lead.id)


def _submission_result(form: FormRow, lead_id: str) -> SubmissionResult:
    return SubmissionResult(id=lead_id, message=_message(form), redirect_url=form.redirect_url)


class _Submitted(NamedTuple):
    # ``warnings`` name what was sent and is not stored.
    data: dict[str, Any]
    contact: Contact
    warnings: list[CallWarning]
    errors: list[FieldError]
    key: Key  # Equal for equal submissions of one visitor.
    # Waits for the quota. Returns whether the lead is beyond the number that the plan includes.
    over_quota: Callable[[], bool]


def _read_submission(
    ctx: Context,
    form: FormRow,
    workspace: WorkspaceRow,
    values: Mapping[str, Any],
    proposal_id: str | None,
) -> _Submitted:
    # If a value is wrong, only the site is read: a closed one is the first reason to refuse.
    # Otherwise the lead is counted at the same time; a failure of the unit undoes this.
    workspace_id = ctx.workspace_id
    sent, language = sent_fields.assign(form.specs, values), form.language
    place = Place(workspace.country, workspace.timezone)
    data, errors = form_fields.validate(form.specs, sent.values, language, place)
    others, other_errors = form_fields.clean_others(sent.others, language)
    data |= others
    name, email, phone = form_fields.contact(form.specs, data)
    contact = Contact.create(name=name, email=email, phone=phone, country=workspace.country)
    items, cart_errors = read_cart(workspace_id, values.get(CART), language)
    data |= {CART: items} if items else {}
    errors = [*errors, *other_errors, *cart_errors]
    if not (data or errors):
        errors = [FieldError(form.specs[0].name, form_text(language, "empty"), "empty")]
    warnings = _warnings(form, sent)
    key = _submission_key(ctx, form, data, proposal_id)
    keys = [SITES.key(workspace_id, record_id=form.project_id)] if form.project_id else []
    # A wrong value is refused anyway, so neither the quota nor the client is read.
    if errors:
        ctx.unit.rows.read(keys)
        return _Submitted(data, contact, warnings, errors, key, lambda: False)
    keys += matching.holder_keys(workspace_id, contact)
    keys.append(key)
    keys += [limits.key(limit, subject) for limit, subject in _daily_limits(ctx, form)]
    with deadline.side_by_side() as start:
        # The quota is counted while the rows are read, which hides the round trip.
        over_quota = start(partial(lead_quota.is_over_quota, ctx.unit, workspace))
        ctx.unit.rows.read(keys)
    return _Submitted(data, contact, warnings, errors, key, over_quota.result)


def _warnings(form: FormRow, sent: SentFields) -> list[CallWarning]:
    # What was sent and is not stored.
    warnings = [
        CallWarning(
            f"{spec.name}: no consent is stored, because the value is not a word such as yes, on "
            "or 1.",
            WarningCode.CONSENT_NOT_STORED,
            {"field": spec.name},
        )
        for spec in form.specs
        if form_fields.is_no_consent(spec, sent.values.get(spec.name))
    ]
    if sent.technical:
        names = [name[:MAX_NAMED_CHARACTERS] for name in sent.technical[:MAX_NAMED]]
        more = len(sent.technical) - MAX_NAMED
        others = f" and {more} more" if more > 0 else ""
        message = f"Values that only programs need are not stored: {', '.join(names)}{others}."
        facts = {"count": len(sent.technical), "fields": names}
        warnings.append(CallWarning(message, WarningCode.VALUES_NOT_STORED, facts))
    return warnings


def _submission_key(
    ctx: Context, form: FormRow, data: dict[str, Any], proposal_id: str | None
) -> Key:
    sorted_values = sorted((name, to_json(value)) for name, value in data.items())
    parts = [form.id, ctx.principal.rate_limit_key, repr(sorted_values), proposal_id or ""]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return leads.submission_key(ctx.workspace_id, digest=digest)


def _daily_limits(ctx: Context, form: FormRow) -> list[tuple[Limit, str]]:
    # Counted in the transaction of the lead, so a submission that is refused counts nowhere.
    shared = FORM_SUBMISSIONS_PER_DAY
    subjects = ctx.principal.share_subjects
    return [*lead_quota.visitor_limits(ctx.workspace_id, subjects, shared), (shared, form.id)]


def _new_lead(  # noqa: PLR0913, PLR0917  the sources of a lead
    ctx: Context,
    form: FormRow,
    site: SiteRow | None,
    workspace: WorkspaceRow,
    submitted: _Submitted,
    args: FormSubmission,
    origin: Origin,
) -> LeadRow:
    now, data, contact = clock.now(), submitted.data, submitted.contact
    rows, workspace_id = ctx.unit.rows, ctx.workspace_id
    fills = matching.name_for_own_client(
        workspace_id, contact, rows, own_client_id=origin.client_id
    )
    match = matching.match(workspace_id, contact, fills=fills, rows=rows)
    if match is not None:
        match.count(ctx.unit, now, leads=1)
    source = sources.source_of(
        args.page,
        referrer=args.referrer,
        campaign=args.campaign.model_dump() if args.campaign else {},
    )
    lead = LEADS.new(
        ctx.workspace_id,
        status="new",
        form_id=form.id,
        dialog_id=origin.dialog_id,
        project_id=form.project_id,
        page_id=_page_id(ctx, site, args.page) if site else None,
        client_id=match.client.id if match else None,
        **contact._asdict(),
        is_order=True if CART in data else None,
        over_quota=submitted.over_quota() or None,
        source=source,
        source_name=source["name"],
        named_contacts=contact_lookups.merge_contacts(
            None,
            contacts.contacts_in(leads.texts_in(_drop_cart(data)), workspace.country),
            besides=contact.identity.values(),
        ),
        day=clock.local_day(now, workspace.timezone).isoformat(),
    )
    leads.set_data(ctx.unit, lead, data | _consents(form, data, has_agreed=bool(args.consent)))
    ctx.unit.create(lead)
    crm_metrics.count_created(ctx.unit, [(lead, match is not None and match.is_new)])
    return lead


def _drop_cart(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != CART}


def _page_id(ctx: Context, site: SiteRow, url: str | None) -> str | None:
    # Only a page of the form's own site counts, because the browser may report any URL.
    slug = site.page_slug(url)
    return None if slug is None else pages.find_id(ctx.workspace_id, site, slug)


def _consents(form: FormRow, data: dict[str, Any], *, has_agreed: bool) -> dict[str, Any]:
    now = clock.now()
    if form_fields.lacks_consent(form.specs):
        # The visitor has read this text beside the box. Another value may have the name.
        label, name = form_text(form.language, "label_consent"), "consent"
        name = f"_{name}" if name in data else name
        return {name: leads.consent(label, now)} if has_agreed else {}
    return {
        spec.name: leads.consent(spec.label, now)
        for spec in form.specs
        if spec.type == "consent" and data.get(spec.name)
    }
