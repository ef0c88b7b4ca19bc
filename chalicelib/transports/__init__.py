"""How calls arrive: REST, tool server, public routes, console, pages, chat, schedules."""
