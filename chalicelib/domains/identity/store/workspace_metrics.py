"""Daily counters of a workspace over all its sites, services and bots, for the overview."""

# Without these totals, the overview would have to add up a hundred counters of sites and bots.
# Leads of the whole workspace are counted in ``domains.leads.store.crm_metrics``.
SUBJECT = "workspace"
BOOKINGS = "bookings"  # made that day, cancelled ones included
DIALOGS = "dialogs"  # that visitors started
VISITORS = "visitors"  # Unique across all sites. A visitor of two sites is counted twice.
