"""One client per person: how a person is found or made."""
