"""Pure rules of waiting lists."""
