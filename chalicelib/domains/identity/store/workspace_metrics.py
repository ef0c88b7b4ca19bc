"""Daily counters of a workspace over all its sites, services and bots, for the overview.

The counters of each site and bot are kept as well. Without the totals here, the overview would have
to add up a hundred counters. Leads of the whole workspace are counted elsewhere, in
``domains.leads.store.crm_metrics``.
"""

SUBJECT = "workspace"
BOOKINGS = "bookings"
"""Bookings made that day, cancelled ones included."""
DIALOGS = "dialogs"
"""Dialogs that visitors started."""
VISITORS = "visitors"
"""Unique visitors across all sites. A visitor of two sites is counted twice."""
