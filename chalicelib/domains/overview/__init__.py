"""What spans domains: the workspace at a glance and a site's statistics."""
