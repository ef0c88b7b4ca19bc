"""The streaming chat: its route, events, function URL and Lambda runtime."""
