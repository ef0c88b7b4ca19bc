"""Sites, pages, custom domains and visits."""
