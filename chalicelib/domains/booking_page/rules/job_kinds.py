"""Kinds of jobs that follow what visitors request."""

from chalicelib.core.jobs import JobKind, Queue

# Sends the link which books a visitor's request. The payload has ``requestId``.
MAIL_BOOKING_LINK = JobKind("mail-booking-link", Queue.EVENTS)
