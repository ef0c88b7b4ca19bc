"""Steps that the tools for assistants share."""
