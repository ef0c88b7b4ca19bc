"""Dialogs of bots with visitors, and what is counted of them and of the widget."""

from chalicelib.domains.dialogs import records, stats, widget

__all__ = ["records", "stats", "widget"]
