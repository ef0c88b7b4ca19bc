"""The gate that every e-mail passes, with its limits, pauses and reports of bounces."""
