"""What a workspace counts a day over all its sites, services and bots, for one look at it.

Each is counted where it is counted for its site or bot as well, so that nobody sums up a hundred
of them. Leads of the whole workspace have a subject of their own
(``domains.leads.store.crm_metrics``).
"""

SUBJECT = "workspace"
BOOKINGS = "bookings"
"""Made that day, whatever became of them."""
DIALOGS = "dialogs"
"""Begun by visitors."""
VISITORS = "visitors"
"""Of all sites; who is seen on two counts twice."""
