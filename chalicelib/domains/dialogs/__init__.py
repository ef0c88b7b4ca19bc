"""Dialogs of bots with visitors, and what is counted of them and of the widget."""

from chalicelib.domains.dialogs import records, stats, widget
from chalicelib.flows import chat_exchange as _crashed
from chalicelib.flows import dialogs as _expired

# Jobs close what a crashed chat left, and remove old dialogs: whoever runs jobs loads all domains.
_ = (_crashed, _expired)

__all__ = ["records", "stats", "widget"]
