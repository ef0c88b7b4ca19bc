"""Accept a form that a visitor submits."""

from datetime import timedelta

from chalicelib.application.context import Context
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, ServedAs, operation
from chalicelib.domains.leads.flows import submissions
from chalicelib.domains.leads.flows.form_checks import TooFastError
from chalicelib.domains.leads.flows.submissions import FormSubmission, SubmissionResult
from chalicelib.domains.leads.store.forms import FORMS

# Submissions of one form by one visitor. If the limiter is unavailable, they are refused.
SUBMISSIONS_PER_MINUTE = Limit(
    "form",
    "submissions of a form per minute",
    30,
    timedelta(minutes=1),
    within=lambda args: args.id,
)


@operation(
    rest="POST /api/public/forms/{id}/submit",
    audience=PUBLIC,
    resolve=lambda args: FORMS.found_for_visitor(FORMS.workspace_of(args.id)),
    limit=SUBMISSIONS_PER_MINUTE,
    form=True,
    served_as=ServedAs.HTML_FORM,
    example={"id": "FORM_ID", "name": "Ada", "email": "ada@example.com"},
    errors=(TooFastError,),
)
def submit_form(ctx: Context, args: FormSubmission) -> SubmissionResult:
    """Create a lead from a visitor's submission.

    If a visitor submits the same values again within ten minutes, the first lead is returned.
    """
    return submissions.submit(ctx, args)
