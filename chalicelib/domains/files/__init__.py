"""Files: their records, the folders they lie in, how they come, and how they go."""

from chalicelib.domains.files import deletion, folder_deletion, folders, records, uploads

__all__ = ["deletion", "folder_deletion", "folders", "records", "uploads"]
