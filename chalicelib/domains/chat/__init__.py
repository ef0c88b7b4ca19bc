"""Dialogs, messages, chat sessions, the answer of a bot and its charge."""
