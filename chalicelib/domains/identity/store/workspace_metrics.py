"""Daily counters of a workspace over all its sites, services and bots, for the overview."""

# The counters of each site and bot are kept as well. Without these totals, the overview would have
# to add up a hundred of them. Leads of the whole workspace are counted in
# ``domains.leads.store.crm_metrics``.
SUBJECT = "workspace"
BOOKINGS = "bookings"  # made that day, cancelled ones included
DIALOGS = "dialogs"  # that visitors started
VISITORS = "visitors"  # Unique across all sites. A visitor of two sites is counted twice.
