"""Entry points: REST, tool server, public routes, console, pages, chat and scheduled jobs."""
