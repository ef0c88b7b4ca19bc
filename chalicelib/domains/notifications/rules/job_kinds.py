"""Kinds of jobs that send messages to members, and reminders and SMS to clients."""

from chalicelib.core.jobs import JobKind, Queue

NOTIFY_MEMBER = JobKind("notify-member", Queue.EVENTS)  # one message to one member
NOTIFY_DIGEST = JobKind("notify-digest", Queue.EVENTS)  # one message for many that were held back
# Reminds a client of a booking, and makes the job of the next reminder.
REMIND_CLIENT = JobKind("remind-client", Queue.EVENTS)
# Asks a client who has agreed to advertising to book again, some days after a visit.
BOOK_AGAIN = JobKind("book-again", Queue.EVENTS)
# Asks the provider whether an SMS has arrived, and passes the message on if it cannot.
CHECK_SMS = JobKind("check-sms", Queue.EVENTS)
