"""Dialogs of bots with visitors, and what is counted of them and of the widget."""
