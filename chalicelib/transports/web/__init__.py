"""The public web pages, and the base that blog, console and reference share."""
