"""How records are listed, counted, searched and found: index entries and queries."""
