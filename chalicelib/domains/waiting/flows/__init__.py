"""Steps that operations and jobs of waiting lists share."""
