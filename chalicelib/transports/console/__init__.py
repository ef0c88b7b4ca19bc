"""The console, in which users manage their workspaces by operations of the session audience."""
