"""Tools of a booking page for the assistants that visitors bring, and their statistics."""
