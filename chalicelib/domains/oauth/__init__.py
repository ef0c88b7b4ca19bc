"""Sign users in from AI clients by OAuth 2.1."""
