"""Sites: records, custom domains, suspension, deletion with everything on them, and visits."""
