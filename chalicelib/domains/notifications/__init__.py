"""Send messages about events to members of a workspace and to visitors."""
