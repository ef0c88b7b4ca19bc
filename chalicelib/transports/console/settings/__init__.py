"""Pages of the workspace: its settings, people, programs and money."""
