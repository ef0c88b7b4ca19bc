"""Pure rules that several domains share. No I/O."""
