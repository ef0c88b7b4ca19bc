"""Kinds of jobs that follow payments, by the purpose of the payment."""

from chalicelib.core.jobs import JobKind, Queue

# Ask a provider for the state of a payment. The payload has ``paymentId``.
# The handler of a kind knows what follows from the payment.
PAYMENT_JOBS = {
    "booking": JobKind("booking-payment", Queue.EVENTS),
    "top_up": JobKind("top-up-payment", Queue.EVENTS),
}
# Send a refund. The payload has ``paymentId`` and ``refundId``.
REFUND_JOBS = {"booking": JobKind("booking-refund", Queue.EVENTS)}
# Removes the secret of a former account at a provider. The payload has ``merchantId``.
END_MERCHANT_SECRET = JobKind("end-merchant-secret")
# Reads once a day what was refunded or disputed at the provider of an account. The payload has
# ``merchantId``. The workspace is the owner of the account.
READ_RETURNS = JobKind("read-returned-payments", Queue.EVENTS)
