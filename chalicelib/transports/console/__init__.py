"""The console, in which users manage their workspaces.

``routes`` lists the paths. ``access`` checks sessions and forms, and refuses API keys and other
sites' forms. ``console_request`` provides the context of a page. Pages call operations of the
session audience.
"""
