"""Pages of sites, of their pages, and what is placed on them."""
