"""The demo workspace: a small bakery, so that everything there is to list shows something."""
