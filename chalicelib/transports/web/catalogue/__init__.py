"""What pages say, by the kind of pages."""
