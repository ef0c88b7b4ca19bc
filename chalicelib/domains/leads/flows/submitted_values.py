"""Values that a visitor submitted, under the labels of the form."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from chalicelib.domains.leads.rules.form_fields import CART
from chalicelib.domains.leads.store.forms import FORMS, FormRow
from chalicelib.domains.leads.store.leads import CONSENT, LeadRow


class SubmittedValue(NamedTuple):
    name: str
    label: str  # the form's, or the field's name if the form has none
    value: Any  # the wording of a consent
    consent_at: str | None = None


def forms(workspace_id: str, ids: Iterable[str]) -> dict[str, FormRow]:
    """Return the forms with these ids, by id. Forms that were deleted lately are among them."""
    form_ids = sorted(set(ids))
    forms_by_id = {form.id: form for form in FORMS.fetch(workspace_id, form_ids)}
    if missing := [form_id for form_id in form_ids if form_id not in forms_by_id]:
        forms_by_id |= {form.id: form for form in FORMS.fetch_deleted(workspace_id, missing)}
    return forms_by_id


def list_values(lead: LeadRow, form: FormRow | None) -> Iterator[SubmittedValue]:
    """Yield the values in the order of the form, then undeclared ones, but no ordered products."""
    data = lead.whole_data
    labels = {spec.name: spec.label for spec in form.specs} if form else {}
    names = [name for name in labels if name in data]
    names += [name for name in data if name not in labels and name != CART]
    for name in names:
        value = data[name]
        if isinstance(value, dict) and value.keys() == CONSENT:
            label, at = str(value["label"]), str(value["at"])
            yield SubmittedValue(name, labels.get(name, name), label, consent_at=at)
        else:
            yield SubmittedValue(name, labels.get(name, name), value)
