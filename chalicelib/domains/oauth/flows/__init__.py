"""Steps of OAuth that call other servers."""
