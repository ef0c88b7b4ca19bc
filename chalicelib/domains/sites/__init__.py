"""Sites: their records, custom domains, suspension, and deletion with everything on them."""
